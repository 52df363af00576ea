#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/http_server.h"
#include "tests/support/error_of.h"
#include "tests/support/http_peer.h"
#include "tests/support/temporary_folder.h"

namespace trtmc {
namespace {

using testing::EndsWith;
using testing::StartsWith;

void hello(const std::shared_ptr<Exchange>& exchange) { exchange->respond(plain("hello")); }

// The PEM text that `write` writes.
template <typename Write>
std::string pem(Write&& write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  write(memory);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(memory);
  return text;
}

// A new key and a certificate that it has signed itself, valid for a day.
struct Identity {
  explicit Identity(const char* name) {
    EVP_PKEY* const pair = EVP_EC_gen("P-256");
    X509* const signed_by_itself = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(signed_by_itself), -3600);
    X509_gmtime_adj(X509_getm_notAfter(signed_by_itself), 86400);
    X509_NAME_add_entry_by_NID(X509_get_subject_name(signed_by_itself), NID_commonName,
                               MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1, -1,
                               0);
    X509_set_pubkey(signed_by_itself, pair);
    X509_sign(signed_by_itself, pair, EVP_sha256());
    certificate = pem([&](BIO* out) { PEM_write_bio_X509(out, signed_by_itself); });
    key = pem([&](BIO* out) {
      PEM_write_bio_PrivateKey(out, pair, nullptr, nullptr, 0, nullptr, nullptr);
    });
    locked_key = pem([&](BIO* out) {
      char password[] = "secret";
      PEM_write_bio_PrivateKey(out, pair, EVP_aes_256_cbc(), nullptr, 0, nullptr, password);
    });
    X509_free(signed_by_itself);
    EVP_PKEY_free(pair);
  }

  std::string certificate, key, locked_key;
};

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    write_text(options_.tls_cert, identity_.certificate);
    write_text(options_.tls_key, identity_.key);
  }

  std::string complaint() const {
    return error_of([&] { HttpServer(options_, hello); }).what();
  }

  const Identity identity_{"first"};
  const TemporaryFolder folder_;
  HttpServerOptions options_ = [&] {
    HttpServerOptions options = local_options();
    options.tls_cert = folder_.path() / "cert.pem";
    options.tls_key = folder_.path() / "key.pem";
    return options;
  }();
};

// What a client that trusts anybody reads after `request`; empty if they do not agree on a version.
std::string ask_secretly(uint16_t port, std::string_view request,
                         int newest_version = TLS1_3_VERSION) {
  const RawSocket socket(port);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, newest_version);
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, socket.fd());
  std::string answer;
  if (SSL_connect(ssl) == 1) {
    SSL_write(ssl, request.data(), static_cast<int>(request.size()));
    char buffer[4096];
    for (int count = 0; (count = SSL_read(ssl, buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<size_t>(count));
    }
    // The end was said, not cut.
    EXPECT_NE(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, 0);
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return answer;
}

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST_F(HttpTls, Answers) {
  const HttpServer server(options_, hello);
  EXPECT_THAT(server.url(), StartsWith("https://127.0.0.1:"));
  const std::string answer = ask_secretly(server.port(), kGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("hello"));
  EXPECT_THAT(ask_secretly(server.port(), kGet, TLS1_2_VERSION), EndsWith("hello"));
}

TEST_F(HttpTls, SpeaksNothingOlderThan12) {
  const HttpServer server(options_, hello);
  EXPECT_EQ(ask_secretly(server.port(), kGet, TLS1_1_VERSION), "");
}

TEST_F(HttpTls, SendsALargeAnswerWhole) {
  const HttpServer server(options_, [](const auto& exchange) {
    exchange->respond(plain(std::string(3'000'000, 'x')));
  });
  const std::string answer = ask_secretly(server.port(), kGet);
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 3'000'000u);
}

TEST_F(HttpTls, ClosesOnWhoSpeaksPlainly) {
  const HttpServer server(options_, hello);
  RawSocket socket(server.port());
  socket.send(kGet);
  socket.finish_sending();
  EXPECT_THAT(socket.read_to_end(), testing::Not(testing::HasSubstr("HTTP")));
  EXPECT_THAT(ask_secretly(server.port(), kGet), EndsWith("hello"));
}

TEST_F(HttpTls, GivesUpWhoNeverShakesHands) {
  options_.header_timeout = std::chrono::milliseconds(30);
  const HttpServer server(options_, hello);
  RawSocket socket(server.port());
  EXPECT_EQ(socket.read_to_end(), "");
}

TEST_F(HttpTls, TellsThatTheClientHasClosed) {
  ExchangeQueue queue;
  const HttpServer server(options_, queue.handler());
  Flag gone;
  std::shared_ptr<Exchange> exchange;
  {
    const RawSocket socket(server.port());
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL* const ssl = SSL_new(context);
    SSL_set_fd(ssl, socket.fd());
    ASSERT_EQ(SSL_connect(ssl), 1);
    SSL_write(ssl, kGet.data(), static_cast<int>(kGet.size()));
    exchange = queue.next();
    exchange->on_gone([&] { gone.raise(); });
    exchange->start_stream(text_response(200, "text/event-stream", "data: 1\n\n"));
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  EXPECT_TRUE(gone.wait());
}

// The name of who answers on `port`.
std::string subject(uint16_t port) {
  const RawSocket socket(port);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL* const ssl = SSL_new(context);
  SSL_set_fd(ssl, socket.fd());
  std::string name;
  if (SSL_connect(ssl) == 1) {
    X509* const certificate = SSL_get1_peer_certificate(ssl);
    char text[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text,
                              sizeof text);
    X509_free(certificate);
    name = text;
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return name;
}

TEST_F(HttpTls, ShowsANewCertificateWithoutAnEnd) {
  ExchangeQueue queue;
  HttpServer server(options_, queue.handler());
  EXPECT_EQ(subject(server.port()), "first");
  const Identity renewed("second");
  write_text(options_.tls_cert, renewed.certificate);
  EXPECT_EQ(error_of([&] { server.reload_certificate(); }).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(subject(server.port()), "first");
  write_text(options_.tls_key, renewed.key);
  server.reload_certificate();
  EXPECT_EQ(subject(server.port()), "second");
}

TEST_F(HttpTls, SaysWhatIsWrongWithItsFiles) {
  const std::string cert = options_.tls_cert.string(), key = options_.tls_key.string();
  write_text(key, Identity("other").key);
  EXPECT_EQ(complaint(), key + " is not the key of the certificate in " + cert);
  const std::string no_key = key + ": no private key in PEM form without a password";
  write_text(key, identity_.locked_key);
  EXPECT_EQ(complaint(), no_key);
  write_text(key, "nonsense");
  EXPECT_EQ(complaint(), no_key);
  write_text(key, "");
  EXPECT_EQ(complaint(), no_key);
  write_text(cert, identity_.key);
  EXPECT_EQ(complaint(), cert + ": no certificate in PEM form");
  options_.tls_cert = folder_.path() / "none.pem";
  EXPECT_EQ(error_of([&] { HttpServer(options_, hello); }).code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace trtmc
