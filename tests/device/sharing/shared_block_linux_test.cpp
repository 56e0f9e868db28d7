#include <tensorpool/device/shared_block.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <tensorpool/device/host_backend.hpp>

#include "device/sharing/shared_block_message.hpp"
#include "support/child_process.hpp"

namespace tensorpool::device {
namespace {

/// A connected pair of sockets, and a file in place of memory of a device.
class SharedBlockTest : public ::testing::Test {
protected:
    static constexpr Device cuda_1 = {DeviceType::cuda, 1};

    explicit SharedBlockTest(int type = SOCK_SEQPACKET) {
        EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sockets_), 0);
    }
    ~SharedBlockTest() override {
        for (const int socket : sockets_) close(socket);
    }

    int sender() const { return sockets_[0]; }
    int receiver() const { return sockets_[1]; }
    void hang_up() { close(std::exchange(sockets_[0], -1)); }
    static int make_file() { return memfd_create("memory", MFD_CLOEXEC); }
    static std::ptrdiff_t open_files() {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    }

    /// Sends bytes with so many descriptors.
    void send_bytes(const void* bytes, std::size_t count, std::size_t files = 1) {
        const int file = make_file();
        iovec text{const_cast<void*>(bytes), count};
        alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
        msghdr header{};
        header.msg_iov = &text;
        header.msg_iovlen = 1;
        if (files != 0) {
            header.msg_control = control;
            header.msg_controllen = CMSG_SPACE(files * sizeof(int));
            cmsghdr* const rights = CMSG_FIRSTHDR(&header);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(files * sizeof(int));
            for (std::size_t i = 0; i < files; ++i) {
                std::memcpy(CMSG_DATA(rights) + i * sizeof file, &file, sizeof file);
            }
        }
        EXPECT_EQ(sendmsg(sender(), &header, 0), static_cast<ssize_t>(count));
        close(file);
    }
    static SharedBlockMessage message() {
        SharedBlockMessage message;
        message.bytes = 4096;
        std::strcpy(message.device.data(), "cuda:1");
        return message;
    }
    /// Returns the error of `receive`, after which no descriptor may be left open.
    std::string error_of_receive() {
        const std::ptrdiff_t before = open_files();
        std::string error;
        try {
            (void)SharedBlock::receive(receiver());
        } catch (const DeviceError& refused) {
            error = refused.what();
        }
        EXPECT_EQ(open_files(), before);
        return error;
    }
    std::string error_of(const SharedBlockMessage& message) {
        send_bytes(&message, sizeof message);
        return error_of_receive();
    }

private:
    int sockets_[2] = {-1, -1};
};

class SharedBlockSocket : public SharedBlockTest, public ::testing::WithParamInterface<int> {
protected:
    SharedBlockSocket() : SharedBlockTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Types, SharedBlockSocket, ::testing::Values(SOCK_SEQPACKET, SOCK_STREAM));

TEST_P(SharedBlockSocket, HandsOverTheDescriptorAndWhatIsNeededToOpenIt) {
    const SharedBlock sent(cuda_1, 4096, make_file());
    const SharedBlock second({DeviceType::cuda, 0}, 8192, make_file());
    sent.send(sender());
    second.send(sender());
    const SharedBlock received = SharedBlock::receive(receiver());
    EXPECT_EQ(received.device(), cuda_1);
    EXPECT_EQ(received.bytes(), 4096U);
    EXPECT_NE(received.file(), sent.file());
    struct stat one {
    }, other{};
    ASSERT_EQ(fstat(sent.file(), &one), 0);
    ASSERT_EQ(fstat(received.file(), &other), 0);
    EXPECT_EQ(one.st_ino, other.st_ino);
    EXPECT_EQ(fcntl(received.file(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ(SharedBlock::receive(receiver()).bytes(), 8192U);
}

TEST_F(SharedBlockTest, ClosesItsDescriptorOnce) {
    const std::ptrdiff_t before = open_files();
    {
        SharedBlock block(cuda_1, 4096, make_file());
        const SharedBlock moved = std::move(block);
        EXPECT_EQ(open_files(), before + 1);
        EXPECT_EQ(moved.bytes(), 4096U);
    }
    EXPECT_EQ(open_files(), before);
}

TEST_F(SharedBlockTest, RejectsMessagesOfOtherKinds) {
    SharedBlockMessage of_other_kind = message();
    of_other_kind.magic[0] = 'x';
    EXPECT_EQ(error_of(of_other_kind),
              "tensorpool: shared block: receive: message: found one of another kind, expected a "
              "shared block");
    SharedBlockMessage newer = message();
    newer.version = 2;
    EXPECT_EQ(error_of(newer), "tensorpool: shared block: receive: version: found 2, expected 1");
}

TEST_F(SharedBlockTest, RejectsSizesThatNoMemoryHas) {
    SharedBlockMessage wrong = message();
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 63}) {
        wrong.bytes = bytes;
        EXPECT_EQ(error_of(wrong), "tensorpool: shared block: receive: size: found " +
                                       std::to_string(bytes) +
                                       " B, expected 1 to 4611686018427387904 B");
    }
}

TEST_F(SharedBlockTest, RejectsTextsThatNameNoDevice) {
    SharedBlockMessage wrong = message();
    wrong.device[0] = 'x';
    EXPECT_NE(error_of(wrong).find("xuda:1"), std::string::npos);
    wrong.device.fill('c');
    EXPECT_EQ(error_of(wrong),
              "tensorpool: shared block: receive: device: found a text without an end, expected "
              "the name of a device");
}

TEST_F(SharedBlockTest, RejectsAnyOtherNumberOfDescriptorsThanOne) {
    const SharedBlockMessage right = message();
    for (const std::size_t files : {0U, 2U, 3U}) {
        send_bytes(&right, sizeof right, files);
        EXPECT_EQ(error_of_receive(), "tensorpool: shared block: receive: descriptors: found " +
                                          std::to_string(files) + ", expected 1");
    }
    send_bytes(&right, sizeof right, 8);
    EXPECT_NE(error_of_receive(), "");
}

TEST_F(SharedBlockTest, RejectsMessagesOfOtherLengths) {
    char bytes[sizeof(SharedBlockMessage) + 1] = {};
    send_bytes(bytes, 3);
    EXPECT_EQ(error_of_receive(),
              "tensorpool: shared block: receive: message: found 3 B, expected 56 B");
    send_bytes(bytes, sizeof bytes);
    EXPECT_EQ(error_of_receive(),
              "tensorpool: shared block: receive: message: found more than 56 B, expected 56 B");
}

TEST_F(SharedBlockTest, ReportsAClosedConnection) {
    hang_up();
    EXPECT_EQ(error_of_receive(),
              "tensorpool: shared block: receive: the peer closed the connection");
}

TEST_F(SharedBlockTest, ReportsTheSystemsErrorOfASend) {
    close(receiver());
    EXPECT_THROW(SharedBlock(cuda_1, 4096, make_file()).send(sender()), DeviceError);
}

TEST_F(SharedBlockTest, NamesBothUsersIfTheyDiffer) {
    EXPECT_NO_THROW(check_users("send", {true, 1000, 1000}));
    try {
        check_users("send", {true, 1000, 1001});
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: shared block: send: the peer's process belongs to user 1001, "
                     "expected user 1000 as of this process");
    }
    EXPECT_THROW(check_users("receive", {true, 1000, 0}), DeviceError) << "not even of root";
    EXPECT_THROW(check_users("receive", {}), DeviceError);
}

TEST_F(SharedBlockTest, HandsNothingOverIfTheUserOfThePeerIsUnknown) {
    const int file = make_file();
    EXPECT_THROW(SharedBlock(cuda_1, 4096, make_file()).send(file), DeviceError);
    EXPECT_THROW((void)SharedBlock::receive(file), DeviceError);
    close(file);
}

TEST_F(SharedBlockTest, HandsNothingOverToAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    const bool is_refused = testing::holds_in_child([&] {
        // The peer is who made the pair: root.
        if (seteuid(65534) != 0) return false;
        try {
            SharedBlock(cuda_1, 4096, make_file()).send(sender());
        } catch (const DeviceError& error) {
            const bool names_both =
                std::string(error.what()).find("user 0, expected user 65534") != std::string::npos;
            char byte = 0;
            return names_both && recv(receiver(), &byte, 1, MSG_DONTWAIT) < 0;
        }
        return false;
    });
    EXPECT_TRUE(is_refused);
}

TEST(OpenedBlock, RejectsBackendsOfAnotherTypeAndThoseWithoutExportableMemory) {
    HostBackend backend;
    const auto error_of = [&](DeviceType type) {
        try {
            const SharedBlock block({type, 0}, 4096, -1);
            const OpenedBlock opened(backend, 0, block);
        } catch (const DeviceError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(error_of(DeviceType::cuda),
              "tensorpool: open: shared block of 4096 B on cuda:0: found a backend of type cpu, "
              "expected cuda");
    EXPECT_NE(error_of(DeviceType::cpu).find("not supported"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::device
