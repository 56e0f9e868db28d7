#pragma once

/// @file
/// One request as the HTTP library reads it: the head that was looked at, then the body.

#include <string>

#include "serve/http/transport.hpp"

namespace tensorpool::command::serve {

class RequestStream final : public httplib::Stream {
public:
    /// `text` is the head and what came of the body; `missing` bytes of that are still to come.
    RequestStream(Transport& transport, std::string text, std::size_t missing)
        : transport_(transport), text_(std::move(text)), missing_(missing) {}

    bool is_readable() const override { return true; }
    bool is_writable() const override { return transport_.is_writable(); }
    ssize_t read(char* bytes, std::size_t count) override;
    ssize_t write(const char* bytes, std::size_t count) override {
        return transport_.write(bytes, count);
    }
    void get_remote_ip_and_port(std::string& ip, int& port) const override {
        transport_.get_remote_ip_and_port(ip, port);
    }
    void get_local_ip_and_port(std::string& ip, int& port) const override {
        transport_.get_local_ip_and_port(ip, port);
    }
    socket_t socket() const override { return transport_.socket(); }

private:
    Transport& transport_;
    std::string text_;
    std::size_t read_ = 0;  ///< of the text
    std::size_t missing_;
};

}  // namespace tensorpool::command::serve
