#!/usr/bin/env python3
"""The files of deploy/ say what the program does, and each is well-formed as far as there are tools to say so.

    deploy_test.py --trtmc FILE --source DIR [unittest's own arguments]

Without PyYAML nothing of the manifests is looked at; without kubernetes-validate, kubectl, systemd-analyze or dpkg their
parts are left out, which is said.
"""
import argparse
import configparser
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()
KUBERNETES = "1.30"
KINDS = {"kustomization": "Kustomization", "deployment": "Deployment", "service": "Service",
         "hpa": "HorizontalPodAutoscaler", "pdb": "PodDisruptionBudget", "inference_pool": "InferencePool"}


def need_module(name):
    if importlib.util.find_spec(name) is None:
        raise unittest.SkipTest(f"there is no Python package {name}")


def need_tool(name):
    if shutil.which(name) is None:
        raise unittest.SkipTest(f"there is no {name}")


def run(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60, check=False, **more)


def source(path):
    return (OPTIONS.source / path).read_text(encoding="utf-8")


def paths_of_server():
    return set(json.loads(source("src/server/openapi.json"))["paths"])


def seconds_of(arguments, option):
    values = [argument.partition("=")[2] for argument in arguments if argument.startswith(option + "=")]
    return int(values[0])


def refuses(*arguments, **more):
    """The exit status and the first line of a server that can't start."""
    done = run(OPTIONS.trtmc, "serve", *arguments, **more)
    return done.returncode, done.stderr.splitlines()[0]


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_module("yaml")
        import yaml

        class Strict(yaml.SafeLoader):
            """Refuses keys that stand twice."""

            def construct_mapping(self, node, deep=False):
                keys = [self.construct_object(key) for key, _ in node.value]
                if len(keys) != len(set(keys)):
                    raise ValueError(f"a key stands twice: {node.start_mark}")
                return super().construct_mapping(node, deep)

        folder = OPTIONS.source / "deploy/kubernetes"
        cls.files = {path.stem: yaml.load(path.read_text(encoding="utf-8"), Strict) for path in folder.glob("*.yaml")}
        cls.pod = cls.files["deployment"]["spec"]["template"]["spec"]
        cls.container, = cls.pod["containers"]

    def test_each_file_is_what_its_name_says(self):
        self.assertEqual({name: file["kind"] for name, file in self.files.items()}, KINDS)
        for name, file in self.files.items():
            if name != "kustomization":
                self.assertEqual(file["metadata"]["name"], "trtmc")
        self.assertEqual({pathlib.Path(name).stem for name in self.files["kustomization"]["resources"]},
                         set(KINDS) - {"kustomization", "inference_pool"})

    def test_everything_selects_the_deployments_pods(self):
        deployment = self.files["deployment"]["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        selectors = [deployment["selector"]["matchLabels"], self.files["service"]["spec"]["selector"],
                     self.files["pdb"]["spec"]["selector"]["matchLabels"],
                     self.files["inference_pool"]["spec"]["selector"]["matchLabels"],
                     self.pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]]
        for selector in selectors:
            self.assertTrue(selector and selector.items() <= labels.items())
        target = self.files["hpa"]["spec"]["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]), ("Deployment", "trtmc"))

    def test_ports_lead_to_the_server(self):
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertEqual(ports, {"http": 8080})
        self.assertEqual(self.files["service"]["spec"]["ports"][0]["targetPort"], "http")
        self.assertEqual(self.files["inference_pool"]["spec"]["targetPorts"], [{"number": 8080}])
        annotations = self.files["deployment"]["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], "8080")
        self.assertIn(annotations["prometheus.io/path"], paths_of_server())

    def test_probes_ask_routes_that_are_there(self):
        for probe, path in (("startupProbe", "startup"), ("readinessProbe", "ready"), ("livenessProbe", "live")):
            asked = self.container[probe]["httpGet"]
            self.assertEqual(asked, {"path": f"/health/{path}", "port": "http"})
            self.assertIn(asked["path"], paths_of_server())

    def test_a_pod_has_the_time_it_needs_to_end(self):
        before = int(self.container["lifecycle"]["preStop"]["exec"]["command"][1])
        drain = seconds_of(self.container["args"], "--drain-seconds")
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], before + drain)

    def test_the_program_takes_the_arguments(self):
        status, line = refuses(*self.container["args"])
        self.assertEqual(status, 3, line)  # Of what it names nothing is here.
        self.assertIn("/etc/trtmc/keys/api-keys", line)

    def test_files_that_arguments_name_are_mounted(self):
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.assertEqual(set(mounts), {volume["name"] for volume in self.pod["volumes"]})
        named = [argument.rpartition("=")[2] for argument in self.container["args"] if "/" in argument]
        self.assertEqual(len(named), 2)
        for path in named:
            self.assertTrue(any(path.startswith(mount + "/") for mount in mounts.values()), path)

    def test_nothing_runs_with_more_rights_than_it_needs(self):
        pod, container = self.pod["securityContext"], self.container["securityContext"]
        self.assertTrue(pod["runAsNonRoot"] and pod["runAsUser"] > 0)
        self.assertEqual(pod["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertFalse(container["allowPrivilegeEscalation"] or self.pod["automountServiceAccountToken"])
        self.assertTrue(container["readOnlyRootFilesystem"])
        self.assertEqual(container["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(all(mount["readOnly"] for mount in self.container["volumeMounts"]))

    def test_memory_holds_keys_and_values_beside_the_weights(self):
        resources = self.container["resources"]
        sizes = [int(resources[kind]["memory"].removesuffix("Gi")) for kind in ("requests", "limits")]
        kv = [argument for argument in self.container["args"] if argument.startswith("--kv-memory=")]
        self.assertEqual(kv, ["--kv-memory=4GiB"])
        self.assertTrue(4 + 6 < sizes[0] <= sizes[1])  # SmolLM3's bundle has 6.2 GB.

    def test_pods_follow_a_figure_that_the_server_has(self):
        metric = self.files["hpa"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
        self.assertIn(f'"{metric}"', source("src/server/engine_metrics.cc"))
        spec = self.files["hpa"]["spec"]
        self.assertTrue(self.files["pdb"]["spec"]["maxUnavailable"] < spec["minReplicas"] < spec["maxReplicas"])

    def test_they_are_valid_by_kubernetes_schemas(self):
        need_module("kubernetes_validate")
        import kubernetes_validate
        for name in ("deployment", "service", "hpa", "pdb"):
            with self.subTest(name):
                kubernetes_validate.validate(self.files[name], KUBERNETES, strict=True)

    def test_a_wrong_manifest_is_found_by_them(self):
        need_module("kubernetes_validate")
        import kubernetes_validate
        wrong = json.loads(json.dumps(self.files["deployment"]))
        wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, KUBERNETES, strict=True)

    def test_kustomize_puts_them_together(self):
        need_tool("kubectl")
        import yaml
        done = run("kubectl", "kustomize", OPTIONS.source / "deploy/kubernetes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({file["kind"] for file in yaml.safe_load_all(done.stdout)},
                         set(KINDS.values()) - {"Kustomization", "InferencePool"})


class Unit(unittest.TestCase):
    def setUp(self):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        parser.read_string(source("deploy/trtmc.service"))
        self.service = parser["Service"]

    def test_it_starts_reloads_and_stops_the_server(self):
        self.assertEqual(self.service["Type"], "exec")
        self.assertEqual(self.service["ExecStart"], "/usr/bin/trtmc serve $TRTMC_SERVE_OPTIONS")
        self.assertEqual(self.service["ExecReload"], "/bin/kill -HUP $MAINPID")
        drain = re.search(r"drain\{(\d+)", source("src/cli/serve_options.h"))
        self.assertGreater(int(self.service["TimeoutStopSec"]), int(drain[1].replace("'", "")) / 1000)

    def test_its_example_has_options_that_there_are(self):
        example = re.search(r"^#\s+TRTMC_SERVE_OPTIONS=(.*)$", source("deploy/trtmc.service"), re.M)
        status, line = refuses(*example[1].split())
        self.assertEqual(status, 3, line)
        self.assertIn("/etc/trtmc/api-keys", line)

    def test_systemd_finds_nothing_wrong(self):
        need_tool("systemd-analyze")
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "trtmc.service"
            unit.write_text(source("deploy/trtmc.service").replace("/usr/bin/trtmc", str(OPTIONS.trtmc)), encoding="utf-8")
            done = run("systemd-analyze", "verify", unit)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            # From 0, nothing can go wrong, to 10, everything; 1.3 when this was written.
            done = run("systemd-analyze", "security", "--offline=yes", "--threshold=15", unit)
            self.assertEqual(done.returncode, 0, done.stdout[-400:])


class Image(unittest.TestCase):
    def setUp(self):
        text = source("deploy/Containerfile").replace("\\\n", " ")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        starts = [i for i, line in enumerate(lines) if line.startswith("FROM ")]
        self.stages = [lines[begin:end] for begin, end in zip(starts, [*starts[1:], len(lines)])]
        self.last = dict(line.split(" ", 1) for line in self.stages[-1])

    def test_the_last_of_two_stages_runs_as_nobody(self):
        self.assertEqual([stage[0] for stage in self.stages], ["FROM debian:12-slim AS build", "FROM debian:12-slim"])
        user, _, group = self.last["USER"].partition(":")
        self.assertTrue(int(user) > 0 and int(group) > 0)
        self.assertEqual(self.last["STOPSIGNAL"], "SIGTERM")

    def test_its_health_is_asked_where_the_server_listens(self):
        self.assertEqual(json.loads(self.last["ENTRYPOINT"]), ["/usr/bin/trtmc", "serve"])
        variables = dict(word.split("=") for word in self.last["ENV"].split())
        self.assertEqual(self.last["EXPOSE"], variables["TRTMC_PORT"])
        path = re.search(r'"http://127\.0\.0\.1:\$TRTMC_PORT(/[^"]*)"', self.last["HEALTHCHECK"])[1]
        self.assertIn(path, paths_of_server())
        self.assertEqual(variables["TRTMC_HOST"], "0.0.0.0")
        # Beside the variables options may stand, after the image's name.
        for options in ([], ["--host", "127.0.0.1", "--port", "9000"]):
            self.assertEqual(refuses(*options, "/models/none.trtmc", env=os.environ | variables)[0], 3)

    def test_it_has_the_libraries_that_the_program_needs(self):
        need_tool("dpkg-query")
        need_tool("readelf")
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", OPTIONS.trtmc).stdout)
        self.assertTrue(needed)
        installed = set(re.findall(r"[a-z0-9.+-]+", self.last["RUN"]))
        for library in needed:
            done = run("dpkg-query", "-S", f"*/{library}")
            owners = {line.split(":")[0] for line in done.stdout.splitlines()}
            if not owners:
                self.skipTest(f"{library} is of no package")
            # Those that every Debian has, or libstdc++6 brings.
            self.assertTrue(owners & (installed | {"libc6", "libgcc-s1"}), f"{library} is of {owners}")

    def test_the_build_stage_does_what_this_tree_can(self):
        build = " ".join(self.stages[0])
        for path in re.findall(r"tools/\w+\.sh", build):
            self.assertTrue((OPTIONS.source / path).exists())
        self.assertIn("release", [preset["name"] for preset in json.loads(source("CMakePresets.json"))["configurePresets"]])
        for option in re.findall(r"-D(TRTMC_\w+)", build):
            self.assertIn(f"option({option} ", source("CMakeLists.txt"))
        component = re.search(r"--component (\w+)", build)[1]
        self.assertIn(f"COMPONENT {component}", source("cmake/Install.cmake"))


if __name__ == "__main__":
    command_line = argparse.ArgumentParser()
    command_line.add_argument("--trtmc", type=pathlib.Path, required=True)
    command_line.add_argument("--source", type=pathlib.Path, required=True)
    OPTIONS, rest = command_line.parse_known_args()
    unittest.main(argv=[sys.argv[0], "-v", *rest])
