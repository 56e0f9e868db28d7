#include "contest/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tensorpool::photos {
namespace {

std::size_t columns_of(std::FILE* stream) {
    if (isatty(fileno(stream)) == 0) return 0;
    winsize size{};
    const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

bool begins_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

}  // namespace

Progress::Progress(std::FILE* stream)
    : stream_(stream), columns_(columns_of(stream)), last_(std::chrono::steady_clock::now()) {}

void Progress::pass(const std::string& text) {
    using namespace std::chrono_literals;
    if (columns_ == 0) {
        if (std::chrono::steady_clock::now() - last_ >= 5s) stay(text);
        return;
    }
    clear();
    std::fputs(cut_to_columns(text, columns_ - 1).c_str(), stream_);
    std::fflush(stream_);
    passing_ = true;
}

void Progress::stay(const std::string& text) {
    clear();
    std::fprintf(stream_, "%s\n", text.c_str());
    std::fflush(stream_);
    last_ = std::chrono::steady_clock::now();
}

void Progress::complain(const std::string& text) {
    clear();
    std::fprintf(stderr, "%s\n", text.c_str());
}

void Progress::clear() {
    if (!passing_) return;
    std::fputs("\r\033[K", stream_);
    std::fflush(stream_);
    passing_ = false;
}

std::string cut_to_columns(const std::string& text, std::size_t columns) {
    std::size_t begun = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (begins_character(text[i]) && ++begun > columns) return text.substr(0, i);
    }
    return text;
}

}  // namespace tensorpool::photos
