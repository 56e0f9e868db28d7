#pragma once

#include <mutex>
#include <set>

namespace tensorpool::command::serve {

/// The connections that are open, so that the end of the server does not wait for their clients.
/// Any thread.
class OpenSockets {
public:
    /// False once `shut_down` was called.
    bool add(int socket);
    void remove(int socket);
    void shut_down();

private:
    std::mutex mutex_;
    std::set<int> sockets_;
    bool shut_down_ = false;
};

}  // namespace tensorpool::command::serve
