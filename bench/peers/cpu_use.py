"""How much of the processors others took while a program ran."""
import os
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
BUSY = 0.1  # Cores; from here on a figure says little: threads that wait for each other lose more than what is taken.


def all_use(stat):
    """(used, taken away by the host) in seconds since the start, from /proc/stat."""
    user, nice, system, _idle, _waiting, irq, soft, steal = (int(field) for field in stat.splitlines()[0].split()[1:9])
    return (user + nice + system + irq + soft) / TICKS, steal / TICKS


def read_stat():
    with open("/proc/stat", encoding="ascii") as file:
        return file.read()


def run(command):
    """Runs `command`; returns its standard output and the cores that others took meanwhile."""
    used, stolen = all_use(read_stat())
    own = os.times()
    start = time.monotonic()
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = time.monotonic() - start
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit status {result.returncode}\n{result.stderr[-2000:]}")
    used_after, stolen_after = all_use(read_stat())
    own_after = os.times()
    own_use = sum(own_after[:4]) - sum(own[:4])
    others = (used_after - used - own_use + stolen_after - stolen) / seconds
    return result.stdout, max(others, 0.0)
