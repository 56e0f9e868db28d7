#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "serve/http/transport.hpp"

namespace tensorpool::command::serve::testing {

/// A client that sends its bytes in parts of a size, and disconnects after it has received `max`
/// bytes. Each part from byte `slow_from` on takes an hour of a clock that only this client moves.
class MemoryTransport final : public Transport {
public:
    explicit MemoryTransport(std::string sent, std::size_t part = 4096, std::size_t max = 1 << 20,
                             std::size_t slow_from = SIZE_MAX)
        : sent_(std::move(sent)), part_(part), max_(max), slow_from_(slow_from) {}

    void set_deadline(Deadline deadline) override { deadline_ = deadline; }
    bool is_readable() const override { return true; }
    bool is_writable() const override { return got.size() < max_; }
    ssize_t read(char* bytes, std::size_t count) override {
        if (read_ >= slow_from_) now_ += std::chrono::hours(1);
        if (now_ > deadline_) return -1;
        count = std::min({count, part_, sent_.size() - read_});
        std::copy_n(sent_.data() + read_, count, bytes);
        read_ += count;
        return static_cast<ssize_t>(count);
    }
    ssize_t write(const char* bytes, std::size_t count) override {
        got.append(bytes, count);
        return static_cast<ssize_t>(count);
    }
    void get_remote_ip_and_port(std::string&, int&) const override {}
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return INVALID_SOCKET; }

    std::string got;

private:
    std::string sent_;
    std::size_t part_;
    std::size_t max_;
    std::size_t slow_from_;
    Deadline now_ = std::chrono::steady_clock::now();
    Deadline deadline_;
    std::size_t read_ = 0;
};

}  // namespace tensorpool::command::serve::testing
