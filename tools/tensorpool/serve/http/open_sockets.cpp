#include "serve/http/open_sockets.hpp"

#include <sys/socket.h>

namespace tensorpool::command::serve {

bool OpenSockets::add(int socket) {
    const std::lock_guard lock(mutex_);
    if (!shut_down_) sockets_.insert(socket);
    return !shut_down_;
}

void OpenSockets::remove(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(socket);
}

void OpenSockets::shut_down() {
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace tensorpool::command::serve
