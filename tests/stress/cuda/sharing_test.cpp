// A block of the card that another process opens. The test starts its own program again, because
// CUDA cannot be used in the child of a fork.

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <tensorpool/device/shared_block.hpp>

#include "stress/cuda/content.hpp"
#include "stress/cuda/other_process.hpp"

namespace tensorpool::stress::cuda {
namespace {

/// Starts this program as the other process, with one end of a pair of sockets.
pid_t start_other_process(int socket) {
    const std::string number = std::to_string(socket);
    std::vector<std::string> texts = {"/proc/self/exe", "--library", command_line().library,
                                      "--open", number};
    if (command_line().quick) texts.emplace_back("--quick");
    std::vector<char*> arguments;
    for (std::string& text : texts) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    pid_t process = 0;
    EXPECT_EQ(posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ),
              0);
    return process;
}

TEST_F(OnCard, AnotherProcessReadsAndWritesASharedBlock) {
    if (!backend().abilities(card).exportable_memory) GTEST_SKIP() << "no exportable memory";
    CachingOptions options;
    options.expandable = true;
    options.exportable = true;
    CachingAllocator allocator(backend(), card, options);
    Content content(backend());
    const std::size_t bytes = quick_or_long(2 * mib, 64 * mib);
    void* const block = allocator.allocate_shareable(bytes);
    content.fill(block, bytes, byte_of_owner, nullptr);
    ASSERT_EQ(backend().synchronize_device(card), DeviceStatus::ok);

    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    const pid_t process = start_other_process(sockets[1]);
    close(sockets[1]);
    allocator.share(block).send(sockets[0]);
    int status = -1;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
    close(sockets[0]);

    content.expect(block, bytes, byte_of_other, nullptr);
    content.compare();
    allocator.deallocate(block);
}

}  // namespace

int use_shared_block(int socket) try {
    CudaBackend backend(command_line().library);
    const SharedBlock block = SharedBlock::receive(socket);
    const OpenedBlock opened(backend, card, block);
    std::vector<unsigned char> bytes(opened.bytes());
    const auto copy = [&](CopyKind kind, void* to, const void* from) {
        return backend.copy(card, kind, to, from, bytes.size()) == DeviceStatus::ok;
    };
    const bool read = copy(CopyKind::device_to_host, bytes.data(), opened.data());
    const std::vector<unsigned char> expected(bytes.size(), byte_of_owner);
    const bool agrees = bytes == expected;
    bytes.assign(bytes.size(), byte_of_other);
    const bool written = copy(CopyKind::host_to_device, opened.data(), bytes.data());
    if (read && agrees && written) return 0;
    std::fprintf(stderr, "other process: read %d, as expected %d, written %d\n", read, agrees,
                 written);
    return 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "other process: %s\n", error.what());
    return 1;
}

}  // namespace tensorpool::stress::cuda
