#include "common/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "common/settings.hpp"

namespace tensorpool::command {

void print_line(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    throw CommandError(finding, std::string("standard output cannot be written: ") +
                                    std::strerror(errno) + "; write to a file on another disk");
}

void print_error(std::string_view line) noexcept {
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

}  // namespace tensorpool::command
