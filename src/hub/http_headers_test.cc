#include "hub/http_headers.h"

#include <gtest/gtest.h>

namespace trtmc {
namespace {

FetchResponse read(std::initializer_list<std::string_view> lines) {
  FetchResponse response;
  for (const std::string_view line : lines) read_header_line(line, response);
  return response;
}

TEST(HttpHeaders, NamesAreInLowerCaseAndValuesWithoutTheBlanksAround) {
  const FetchResponse response =
      read({"HTTP/1.1 206 Partial\r\n", "Content-Range: \t bytes 0-1/2 \r\n"});
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.header("content-range"), "bytes 0-1/2");
}

TEST(HttpHeaders, AResponseThatFollowsTakesNothingFromTheOneBefore) {
  const FetchResponse response =
      read({"HTTP/1.1 100 Continue\r\n", "location: https://a.test\r\n", "\r\n", "HTTP/2 200\r\n"});
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.headers.empty());
}

TEST(HttpHeaders, OfEqualNamesTheLastCounts) { EXPECT_EQ(read({"a: 1", "A: 2"}).header("a"), "2"); }

TEST(HttpHeaders, WhatIsNoHeaderIsPassedOver) {
  const FetchResponse response = read({"HTTP/1.1", "no colon", "", "HTTP/1.1 99999999999 X"});
  EXPECT_EQ(response.status, 0);
  EXPECT_TRUE(response.headers.empty());
}

}  // namespace
}  // namespace trtmc
