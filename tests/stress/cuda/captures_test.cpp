// Captures in global mode that the program begins through the driver.

#include <thread>
#include <vector>

#include "stress/cuda/content.hpp"

namespace tensorpool::stress::cuda {
namespace {

TEST_P(AllocatorOnCard, KeepsTheMemoryOfGraphsForTheirLaunches) {
    if (!backend().abilities(card).graph_capture) GTEST_SKIP() << "the driver has no graphs";
    Content content(backend());
    const StreamHandle stream = make_stream();
    const StreamHandle other = make_stream();
    const CapturePool pool = {1, 7};
    constexpr std::size_t bytes = 4 * mib;
    void* const result = allocator().allocate(bytes, stream);

    std::vector<device::cuda::GraphExec> graphs;
    for (std::uint8_t byte = 1; byte <= 3; ++byte) {
        allocator().begin_capture_pool(pool, [=](StreamHandle of) { return of == stream; });
        begin_capture(stream);
        void* const block = allocator().allocate(bytes, stream);
        content.fill(block, bytes, byte, stream);
        EXPECT_EQ(
            backend().copy_async(card, CopyKind::device_to_device, result, block, bytes, stream),
            DeviceStatus::ok);
        allocator().deallocate(block);
        std::thread([&] {
            allocator().deallocate(allocator().allocate(byte * 8 * mib, other));
        }).join();
        graphs.push_back(end_capture(stream));
        allocator().end_capture_pool(pool);
    }

    std::vector<void*> outside;
    for (int i = 0; i < 8; ++i) {
        outside.push_back(allocator().allocate(bytes, stream));
        content.fill(outside.back(), bytes, 99, stream);
    }
    for (int round = 0; round < quick_or_long(3, 100); ++round) {
        for (std::size_t i = 0; i < graphs.size(); ++i) {
            launch(graphs[i], stream);
            content.expect(result, bytes, static_cast<std::uint8_t>(i + 1), stream);
        }
    }
    for (const void* const block : outside) content.expect(block, bytes, 99, stream);
    content.compare();

    for (const device::cuda::GraphExec graph : graphs) {
        allocator().release_capture_pool(pool);
        destroy(graph);
    }
    outside.push_back(result);
    for (void* const block : outside) allocator().deallocate(block);
    const std::size_t more_than_is_free = allocator().statistics().capacity_bytes + mib;
    allocator().deallocate(allocator().allocate(more_than_is_free, stream));
    EXPECT_EQ(allocator().statistics().captured_bytes, 0U) << to_text(allocator().statistics());
}

}  // namespace
}  // namespace tensorpool::stress::cuda
