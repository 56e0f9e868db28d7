#include "serve/http/head_reader.hpp"

#include <algorithm>
#include <array>

namespace tensorpool::command::serve {
namespace {

Transport::Deadline after(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

}  // namespace

std::variant<RequestHead, Refusal, NoRequest> HeadReader::next() {
    transport_.set_deadline(after(limits_.idle));
    if (buffer_.empty() && !read_more()) return NoRequest();
    transport_.set_deadline(after(limits_.request));
    std::size_t end = buffer_.find("\r\n\r\n");
    for (; end == std::string::npos; end = buffer_.find("\r\n\r\n")) {
        if (buffer_.size() > limits_.head_bytes) return Refusal{431, "the headers are too long"};
        if (!read_more()) return Refusal{408, "the request was too slow or incomplete"};
    }
    if (end + 4 > limits_.head_bytes) return Refusal{431, "the headers are too long"};
    const std::variant<RequestHead, Refusal> head = read_head(take(end + 4), limits_);
    if (const Refusal* refusal = std::get_if<Refusal>(&head)) return *refusal;
    return std::get<RequestHead>(head);
}

std::string HeadReader::take(std::size_t bytes) {
    bytes = std::min(bytes, buffer_.size());
    std::string taken = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return taken;
}

bool HeadReader::read_more() {
    std::array<char, 4096> bytes;
    const ssize_t count = transport_.read(bytes.data(), bytes.size());
    if (count <= 0) return false;
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
}

}  // namespace tensorpool::command::serve
