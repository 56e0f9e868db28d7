#include "trace/line_reader.hpp"

#include <span>

#include "trace/trace_error.hpp"

namespace tensorpool::command::trace {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::size_t most_line_bytes = 4096;

}  // namespace

// Another block behind what is left of the last one.
bool LineReader::fill() {
    buffer_.erase(0, at_);
    buffer_offset_ += at_;
    at_ = 0;
    const std::size_t left = buffer_.size();
    buffer_.resize(left + block_bytes);
    const std::span<char> to = std::span(buffer_).subspan(left);
    const std::size_t got = input_.read(buffer_offset_ + left, std::as_writable_bytes(to));
    buffer_.resize(left + got);
    return got != 0;
}

bool LineReader::next(std::string_view& line) {
    std::size_t end = buffer_.find('\n', at_);
    while (end == std::string::npos && buffer_.size() - at_ <= most_line_bytes && fill()) {
        end = buffer_.find('\n', at_);
    }
    line_offset_ = buffer_offset_ + at_;
    if (end == std::string::npos) end = buffer_.size();  // the last may have none
    if (end == at_ && at_ == buffer_.size()) return false;
    if (end - at_ > most_line_bytes) {
        throw TraceError(input_.name(), line_offset_,
                         "found a line of more than " + std::to_string(most_line_bytes) +
                             " B; expected a shorter one");
    }
    line = std::string_view(buffer_).substr(at_, end - at_);
    at_ = end + (end < buffer_.size() ? 1 : 0);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
}

}  // namespace tensorpool::command::trace
