#include "formats/launch/launch.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>

#include "support/child_process.hpp"

namespace tensorpool::command::launch {
namespace {

/// Connects without sending a message.
Descriptor call(const Observer& observer) {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, observer.name().data(), observer.name().size());
    const auto bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + observer.name().size());
    EXPECT_EQ(::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    return socket;
}

void send_text(const Descriptor& socket, const std::string& text, std::size_t files = 0) {
    iovec part{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(32 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files != 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(files * sizeof(int));
        cmsghdr* const rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(files * sizeof(int));
        const int file = STDIN_FILENO;
        for (std::size_t i = 0; i < files; ++i) {
            std::memcpy(CMSG_DATA(rights) + i * sizeof file, &file, sizeof file);
        }
    }
    EXPECT_EQ(::sendmsg(socket.number(), &message, MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
}

std::vector<Message> taken(Observer& observer) {
    std::vector<Message> messages;
    observer.take([&](Message message) { messages.push_back(std::move(message)); });
    return messages;
}

bool has_something(const Observer& observer) {
    pollfd events{observer.descriptor(), POLLIN, 0};
    return ::poll(&events, 1, 0) == 1;
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(Observer, ReceivesMessagesWithTheirProcess) {
    Observer observer;
    EXPECT_FALSE(has_something(observer));
    send_text(call(observer), "numpy\nwhy");
    ASSERT_TRUE(has_something(observer));
    const auto messages = taken(observer);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(messages[0].process, ::getpid());
    EXPECT_EQ(messages[0].note, "numpy\nwhy");
    EXPECT_FALSE(has_something(observer));
}

TEST(Observer, NeverWaits) {
    Observer observer;
    const Descriptor silent = call(observer);
    EXPECT_TRUE(taken(observer).empty());
    EXPECT_FALSE(has_something(observer));
    send_text(silent, "malloc");
    ASSERT_TRUE(has_something(observer));
    EXPECT_EQ(taken(observer).at(0).note, "malloc");
}

TEST(Observer, TakesFilesUpToItsLimit) {
    const std::size_t before = open_descriptors();
    {
        Observer observer;
        send_text(call(observer), std::string(1, '\0'), 3);
        const auto messages = taken(observer);
        ASSERT_EQ(messages.size(), 1U);
        EXPECT_EQ(messages[0].files.size(), 3U);
        EXPECT_EQ(messages[0].note, "");
        send_text(call(observer), "x", 32);
        EXPECT_EQ(taken(observer).at(0).files.size(), 8U);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Observer, SilentConnectionsTakeAFewDescriptors) {
    Observer observer;
    const std::size_t before = open_descriptors();
    std::vector<Descriptor> callers;
    for (int i = 0; i < 1000; ++i) {
        callers.push_back(call(observer));
        taken(observer);
        if (i >= 100) callers.erase(callers.begin());
    }
    EXPECT_LE(open_descriptors(), before + 64 + 100);
    send_text(callers.back(), "malloc");
    bool heard = false;
    for (const Message& message : taken(observer)) heard |= message.note == "malloc";
    EXPECT_TRUE(heard);
}

TEST(Observer, RejectsOtherUsers) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    Observer observer;
    const int code = testing::exit_code_of_child([&] {
        if (::setuid(65534) != 0) return 1;
        send_text(call(observer), "malloc");
        return 0;
    });
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(taken(observer).empty());
    EXPECT_FALSE(has_something(observer));
}

TEST(Observer, EachHasAUniqueName) {
    const Observer one;
    const Observer other;
    EXPECT_NE(one.name(), other.name());
    EXPECT_LT(one.name().size(), sizeof(sockaddr_un{}.sun_path) - 1);
}

}  // namespace
}  // namespace tensorpool::command::launch
