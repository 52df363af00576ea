// A whole pull from a hub whose every answer is the input's: headers, redirects, sizes, parts,
// bodies and cut connections. Whatever it answers, the token goes to the hub alone, nothing goes
// out unencrypted, nothing is written outside the cache, and a pull that succeeds has the bytes
// that the listing's digests promise.
//
// The input is answers with lines of "====" between them, used in turn and again from the last: raw
// header lines, an empty line, the body. In a listing "@N" stands for the digest of the body of
// answer N, git's or with "#N" SHA-256, and "~N" for its size, so that honest hubs can be told too.
// The first byte says how.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "fuzz/fuzz_input.h"
#include "hub/http_headers.h"
#include "hub/hub_client.h"
#include "hub/url.h"

namespace {

namespace fs = std::filesystem;
using trtmc::as_bytes;

constexpr char kEndpoint[] = "https://hub.test";
constexpr size_t kMostAnswers = 10;  // What "@0" to "@9" can name.

struct Answer {
  trtmc::FetchResponse response;
  std::string body;
  bool cut = false;
};

std::string git_blob_id(std::string_view text) {
  trtmc::Sha1 hash;
  hash.update(as_bytes("blob " + std::to_string(text.size()) + '\0'));
  hash.update(as_bytes(text));
  return trtmc::to_hex(hash.finish());
}

std::vector<Answer> read_answers(trtmc::FuzzInput& input) {
  std::vector<Answer> answers;
  while (!input.empty() && answers.size() < kMostAnswers) {
    trtmc::FuzzInput part = [&] {
      const std::string_view text = input.until("\n====\n");
      return trtmc::FuzzInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    }();
    Answer answer;
    for (std::string_view line = part.until("\n"); !line.empty(); line = part.until("\n")) {
      trtmc::read_header_line(line, answer.response);
    }
    answer.body = part.rest();
    answer.cut = answer.response.headers.count("x-cut") > 0;
    answers.push_back(std::move(answer));
  }
  return answers;
}

// `text` with the digests and sizes of the other answers' bodies in their places.
std::string filled_in(std::string_view text, const std::vector<Answer>& answers) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char kind = text[i];
    const bool stands_for = (kind == '@' || kind == '#' || kind == '~') && i + 1 < text.size() &&
                            text[i + 1] >= '0' &&
                            static_cast<size_t>(text[i + 1] - '0') < answers.size();
    if (!stands_for) {
      result += kind;
      continue;
    }
    const std::string& body = answers[static_cast<size_t>(text[++i] - '0')].body;
    result += kind == '@'   ? git_blob_id(body)
              : kind == '#' ? trtmc::to_hex(trtmc::sha256(as_bytes(body)))
                            : std::to_string(body.size());
  }
  return result;
}

// Gives the answers in turn.
class ScriptedTransport : public trtmc::Transport {
 public:
  ScriptedTransport(const std::vector<Answer>& answers, size_t& next, size_t piece)
      : answers_(answers), next_(next), piece_(piece) {}

  trtmc::FetchResponse get(const trtmc::FetchRequest& request, const trtmc::BodySink& sink,
                           const std::stop_token& stop) override {
    TRTMC_CHECK(request.url.starts_with("https://"), "an address that is not encrypted");
    const auto origin = trtmc::url_origin(request.url);
    TRTMC_CHECK(origin, "an address that is none");
    TRTMC_CHECK((*origin == "https://hub.test:443") == !request.token.empty(),
                "the token went elsewhere, or not to the hub");
    if (stop.stop_requested() || answers_.empty()) throw trtmc::TransientFailure{"stopped"};
    const Answer& answer = answers_[std::min(next_++, answers_.size() - 1)];
    for (size_t at = 0; at < answer.body.size(); at += piece_) {
      const std::string_view piece = std::string_view(answer.body).substr(at, piece_);
      if (!sink(answer.response, as_bytes(piece))) return answer.response;
    }
    if (answer.cut) throw trtmc::TransientFailure{"the connection was cut"};
    return answer.response;
  }

 private:
  const std::vector<Answer>& answers_;
  size_t& next_;
  size_t piece_;
};

void check_snapshot(const trtmc::Snapshot& snapshot) {
  for (const trtmc::RepositoryFile& file : snapshot.files) {
    const std::string bytes = trtmc::read_file(snapshot.folder / file.name);
    const bool git = file.digest.kind == trtmc::FileDigest::Kind::kGitSha1;
    TRTMC_CHECK(bytes.size() == file.bytes, "a file of another size than was promised");
    TRTMC_CHECK((git ? git_blob_id(bytes) : trtmc::to_hex(trtmc::sha256(as_bytes(bytes)))) ==
                    file.digest.hex,
                "a file of other bytes than were promised");
  }
}

// A folder of this process, emptied for every input. What lies beside the cache must stay alone.
const fs::path& scratch() {
  static const fs::path path = [] {
    const fs::path shared = "/dev/shm";
    const fs::path base = fs::is_directory(shared) ? shared : fs::temp_directory_path();
    return base / ("trtmc-hub-responses-" + std::to_string(::getpid()));
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trtmc::set_log_level(trtmc::LogLevel::kError);
  trtmc::FuzzInput input(data, size);
  const uint8_t how = input.byte();
  std::vector<Answer> answers = read_answers(input);
  if (!answers.empty()) answers[0].body = filled_in(answers[0].body, answers);
  size_t next = 0;

  trtmc::HubSettings settings;
  settings.endpoint = kEndpoint;
  settings.token = "hf_secret";
  settings.cache = scratch() / "cache";
  settings.symlinks = how % 2 == 0;
  trtmc::DownloadOptions options;
  options.connections = 1;
  options.chunk_bytes = 1 + how / 16;
  options.retry = {.attempts = 2,
                   .first_wait = std::chrono::milliseconds(0),
                   .longest_wait = std::chrono::milliseconds(0),
                   .longest_retry_after_s = 0};
  const trtmc::HubClient client(
      settings, [&] { return std::make_unique<ScriptedTransport>(answers, next, 1 + how / 2 % 8); },
      options);
  fs::remove_all(scratch());
  fs::create_directories(scratch());
  try {
    check_snapshot(client.pull({{"owner", "name"}, ""}, {}, {}));
  } catch (const trtmc::Error&) {
    // The one way to refuse.
  }
  for (const auto& entry : fs::directory_iterator(scratch())) {
    TRTMC_CHECK(entry.path().filename() == "cache", "a file outside the cache");
  }
  fs::remove_all(scratch());
  return 0;
}
