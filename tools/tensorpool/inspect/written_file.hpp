#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// A file for people and other tools, or standard output, written piece by piece.
class WrittenFile {
public:
    /// Makes or replaces the file; "" is standard output. Throws CommandError where that cannot be,
    /// and where it is `source`, the file that is read.
    WrittenFile(const std::string& path, const std::string& source);

    /// Throws CommandError where it cannot be written, as on a full disk.
    void write(std::string_view text);
    /// After the last piece; throws as `write` does.
    void finish();
    std::uint64_t bytes() const noexcept { return bytes_; }  ///< written so far

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept {
            if (file != stdout) std::fclose(file);
        }
    };
    [[noreturn]] void fail() const;

    std::string name_;
    std::uint64_t bytes_ = 0;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tensorpool::command::inspect
