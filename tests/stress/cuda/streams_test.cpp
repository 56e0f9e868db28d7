// Streams: random uses, default streams of threads, and streams that their owner destroyed.

#include <thread>
#include <vector>

#include "stress/cuda/content.hpp"
#include "stress/devices/random.hpp"

namespace tensorpool::stress::cuda {
namespace {

using devices::Random;

struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
    std::uint8_t byte = 0;
    StreamHandle stream = nullptr;
};

/// A program that allocates, uses and frees blocks at random, on several streams.
class RandomProgram {
public:
    RandomProgram(CachingAllocator& allocator, Content& content, std::vector<StreamHandle> streams)
        : allocator_(allocator), content_(content), streams_(std::move(streams)) {}

    void step() {
        if (blocks_.size() < max_blocks && !random_.one_in(3)) {
            allocate();
        } else if (!blocks_.empty()) {
            std::swap(blocks_[random_.below(blocks_.size())], blocks_.back());
            end(blocks_.back());
            blocks_.pop_back();
        }
    }
    void finish() {
        for (const Block& block : blocks_) end(block);
        blocks_.clear();
        content_.compare();
    }

private:
    static constexpr std::size_t max_blocks = 64;

    StreamHandle any_stream() { return streams_[random_.below(streams_.size())]; }
    void allocate() {
        Block block;
        block.stream = any_stream();
        block.bytes = random_.size(quick_or_long(mib, 64 * mib));
        block.byte = static_cast<std::uint8_t>(random_.below(256));
        block.memory = allocator_.allocate(block.bytes, block.stream);
        content_.fill(block.memory, block.bytes, block.byte, block.stream);
        blocks_.push_back(block);
    }
    /// Reads the block on its own stream, or writes it on another one that has fallen behind, and
    /// frees it while that work is under way.
    void end(const Block& block) {
        const StreamHandle stream = any_stream();
        std::uint8_t byte = block.byte;
        if (stream != block.stream) {
            content_.order(block.stream, stream);
            content_.keep_busy(stream);
            allocator_.record_use(block.memory, stream);
            content_.fill(block.memory, block.bytes, ++byte, stream);
        }
        content_.expect(block.memory, block.bytes, byte, stream);
        allocator_.deallocate(block.memory);
    }

    CachingAllocator& allocator_;
    Content& content_;
    const std::vector<StreamHandle> streams_;
    Random random_{1};
    std::vector<Block> blocks_;
};

TEST_P(AllocatorOnCard, KeepsContentsWhenFourStreamsUseBlocksAtRandom) {
    Content content(backend());
    RandomProgram program(allocator(), content,
                          {nullptr, make_stream(), make_stream(), make_stream()});
    const int steps = quick_or_long(1000, 20'000);
    for (int i = 0; i < steps; ++i) program.step();
    program.finish();
    EXPECT_EQ(allocator().statistics().in_use_bytes, 0U);
}

/// Fills, reads and frees blocks on the default stream of the calling thread, and reads `common`.
void use_own_stream(CachingAllocator& allocator, Backend& backend, const Block& common,
                    std::uint8_t byte) {
    Content content(backend);
    const StreamHandle own = stream_of_thread();
    allocator.record_use(common.memory, own);
    for (int i = 0; i < quick_or_long(50, 1000); ++i) {
        void* const block = allocator.allocate(mib, own);
        content.fill(block, mib, byte, own);
        content.expect(block, mib, byte, own);
        allocator.deallocate(block);
    }
    content.keep_busy(own);
    content.expect(common.memory, common.bytes, common.byte, own);
    content.compare();
}

TEST_P(AllocatorOnCard, KeepsContentsOnTheDefaultStreamsOfThreads) {
    Content content(backend());
    const Block common = {allocator().allocate(mib), mib, 99, nullptr};
    content.fill(common.memory, mib, common.byte, nullptr);
    content.compare();
    std::vector<std::thread> threads;
    for (std::uint8_t byte = 1; byte <= 4; ++byte) {
        threads.emplace_back([&, byte] { use_own_stream(allocator(), backend(), common, byte); });
    }
    for (std::thread& thread : threads) thread.join();
    allocator().deallocate(common.memory);
    EXPECT_EQ(allocator().statistics().in_use_bytes, 0U);
}

TEST_P(AllocatorOnCard, KeepsContentsWhenStreamsAreDestroyedWithoutNotice) {
    Content content(backend());
    Random random(2);
    for (int i = 0; i < quick_or_long(30, 300); ++i) {
        const StreamHandle stream = make_stream();
        const std::size_t bytes = random.size(quick_or_long(mib, 16 * mib));
        void* const own = allocator().allocate(bytes, stream);
        void* const used = allocator().allocate(bytes);
        content.fill(used, bytes, 1, nullptr);
        content.order(nullptr, stream);
        content.keep_busy(stream);
        allocator().record_use(used, stream);
        for (void* const block : {own, used}) {
            content.fill(block, bytes, 2, stream);
            content.expect(block, bytes, 2, stream);
            allocator().deallocate(block);
        }
        destroy(stream);
    }
    content.compare();
    EXPECT_EQ(allocator().try_allocate(memory_info().total_bytes), nullptr);
    EXPECT_EQ(allocator().statistics().capacity_bytes, 0U) << "after pressure waited";
}

}  // namespace
}  // namespace tensorpool::stress::cuda
