#include "platform/platform.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace tensorpool::platform {
namespace {

/// Listens on a socket and receives one message.
class Listener {
public:
    Listener() : name_("tensorpool-test-" + std::to_string(::getpid())) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path + 1, name_.data(), name_.size());
        const auto bytes =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
        socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
        EXPECT_EQ(::listen(socket_, 8), 0);
    }
    ~Listener() {
        for (const int file : files) ::close(file);
        ::close(socket_);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    const char* name() const { return name_.c_str(); }

    void take() {
        const int caller = ::accept(socket_, nullptr, nullptr);
        char part[100];
        iovec vector{part, sizeof part};
        alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &vector;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t got = ::recvmsg(caller, &message, MSG_CMSG_CLOEXEC);
        text.assign(part, got > 0 ? static_cast<std::size_t>(got) : 0);
        if (const cmsghdr* const rights = CMSG_FIRSTHDR(&message)) {
            files.resize((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            std::memcpy(files.data(), CMSG_DATA(rights), files.size() * sizeof(int));
        }
        ::close(caller);
    }

    std::string text;
    std::vector<int> files;

private:
    std::string name_;
    int socket_ = -1;
};

std::uint64_t inode_of(int file) {
    struct stat status {};
    return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

TEST(HandOver, FilesArriveInOrder) {
    Listener listener;
    const int files[] = {::memfd_create("one", MFD_CLOEXEC), ::memfd_create("two", MFD_CLOEXEC)};
    ASSERT_TRUE(hand_files_over(listener.name(), files, 2));
    listener.take();
    EXPECT_EQ(listener.text.size(), 1U);
    ASSERT_EQ(listener.files.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(inode_of(listener.files[i]), inode_of(files[i]));
        ::close(files[i]);
    }
}

TEST(HandOver, NoteArrivesUnchanged) {
    Listener listener;
    ASSERT_TRUE(send_note(listener.name(), "malloc\nwhy"));
    listener.take();
    EXPECT_EQ(listener.text, "malloc\nwhy");
    EXPECT_TRUE(listener.files.empty());
}

TEST(HandOver, FailsWithoutListener) {
    const int file = ::memfd_create("one", MFD_CLOEXEC);
    const std::string too_long(200, 'x');
    errno = 0;
    for (const char* const name : {"tensorpool-no-listener", "", too_long.c_str()}) {
        EXPECT_FALSE(hand_files_over(name, &file, 1));
        EXPECT_FALSE(send_note(name, "malloc"));
    }
    EXPECT_EQ(errno, 0);
    ::close(file);
    const Listener listener;
    EXPECT_FALSE(send_note(listener.name(), ""));
    EXPECT_FALSE(hand_files_over(listener.name(), nullptr, 0));
}

}  // namespace
}  // namespace tensorpool::platform
