// Tests a line written to a standard error that is a file without room.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

TEST(Say, SurvivesFileSizeLimit) {
    EXPECT_EQ(testing::exit_code_of_child([] {
                  std::FILE* const file = std::tmpfile();
                  const rlimit none{0, 0};
                  if (file == nullptr || ::dup2(::fileno(file), STDERR_FILENO) < 0 ||
                      ::setrlimit(RLIMIT_FSIZE, &none) != 0) {
                      return 1;
                  }
                  say("this line is lost");
                  return 0;
              }),
              0);
}

}  // namespace
}  // namespace tensorpool::platform
