#pragma once

#include <functional>
#include <string>

namespace tensorpool::command::serve::testing {

/// A client of 127.0.0.1 that sends given bytes, also one by one. Throws if something does not
/// happen within half a minute.
class SocketClient {
public:
    explicit SocketClient(int port, int receive_buffer_bytes = 0);
    ~SocketClient();
    SocketClient(SocketClient&& other) noexcept;
    SocketClient& operator=(SocketClient&&) = delete;

    /// Returns false if the server has closed the connection.
    bool send(const std::string& bytes);
    /// Sends no more, but still receives.
    void end_sending();
    /// Waits a moment for an answer, and returns whether it came.
    bool has_answer(int milliseconds) const;
    /// Returns everything received so far, once `enough` holds for it or the server has closed the
    /// connection.
    const std::string& receive_until(const std::function<bool(const std::string&)>& enough);
    const std::string& receive_until(const std::string& text);
    const std::string& receive_all();

private:
    int socket_;
    std::string received_;
};

/// Sends one request and returns its answer.
std::string get(int port, const std::string& target, const std::string& headers = "");

}  // namespace tensorpool::command::serve::testing
