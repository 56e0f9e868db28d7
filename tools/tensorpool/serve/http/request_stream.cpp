#include "serve/http/request_stream.hpp"

#include <algorithm>

namespace tensorpool::command::serve {

ssize_t RequestStream::read(char* bytes, std::size_t count) {
    if (read_ < text_.size()) {
        const std::size_t part = std::min(count, text_.size() - read_);
        std::copy_n(text_.data() + read_, part, bytes);
        read_ += part;
        return static_cast<ssize_t>(part);
    }
    if (missing_ == 0) return 0;
    const ssize_t part = transport_.read(bytes, std::min(count, missing_));
    if (part > 0) missing_ -= static_cast<std::size_t>(part);
    return part;
}

}  // namespace tensorpool::command::serve
