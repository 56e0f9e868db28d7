#include "common/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command {

void print_line(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    throw CommandError(finding, std::string("standard output cannot be written: ") +
                                    std::strerror(errno) + "; write to a file on another disk");
}

void print_text(std::string_view text) {
    print_line(text.substr(0, text.size() - 1));
}

void print_error(std::string_view line) noexcept {
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

WrittenFile::WrittenFile(const std::string& path, const std::string& source)
    : name_(path.empty() ? "standard output" : printable(path)) {
    std::error_code ignored;
    if (!path.empty() && std::filesystem::equivalent(path, source, ignored)) {
        throw CommandError(wrong_usage,
                           fmt::format("{} is the recording itself; name another file", name_));
    }
    file_.reset(path.empty() ? stdout : std::fopen(path.c_str(), "wbe"));
    if (file_ == nullptr) fail();
}

void WrittenFile::write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail();
    bytes_ += text.size();
}

void WrittenFile::finish() {
    if (std::fflush(file_.get()) != 0) fail();
}

void WrittenFile::fail() const {
    throw CommandError(finding,
                       fmt::format("{} cannot be written: {}", name_, std::strerror(errno)));
}

void write_file(const std::string& path, const std::string& source, std::string_view text) {
    WrittenFile file(path, source);
    file.write(text);
    file.finish();
}

}  // namespace tensorpool::command
