#include "platform/process/socket_files.hpp"

#include <cerrno>

// No memory of devices can be exported on these systems, so there are no descriptors of it.
namespace tensorpool::platform {

SocketUsers users_of_socket(int) noexcept {
    return {};
}
int send_file(int, int, const void*, std::size_t) noexcept {
    return ENOTSUP;
}
ReceivedFile receive_file(int, void*, std::size_t) noexcept {
    return {.error = ENOTSUP};
}
void close_file(int) noexcept {}

}  // namespace tensorpool::platform
