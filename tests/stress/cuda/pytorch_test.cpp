// The functions for PyTorch, in the order in which PyTorch calls them.

#include <tensorpool/device/pluggable_allocator.h>
#include <tensorpool/device/runtimes.hpp>

#include <stdexcept>
#include <utility>
#include <vector>

#include "stress/cuda/content.hpp"

namespace tensorpool::stress::cuda {
namespace {

/// Calls the functions for the runtime of the card.
class PyTorchsCalls : public OnCard {
protected:
    void SetUp() override {
        OnCard::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        set_backend(DeviceType::cuda, shared_backend());
        content_.emplace(backend());
        stream_ = make_stream();
    }
    void TearDown() override {
        content_.reset();
        set_backend(DeviceType::cuda, nullptr);
        OnCard::TearDown();
    }

    static void* allocate(std::size_t bytes, StreamHandle stream) {
        return tensorpool_torch_malloc(bytes, card, stream);
    }
    static void free(void* memory, std::size_t bytes, StreamHandle stream) {
        tensorpool_torch_free(memory, bytes, card, stream);
    }
    Content& content() noexcept { return *content_; }
    StreamHandle stream() const noexcept { return stream_; }

    /// Allocates the activations of eight layers and their gradients, fills and verifies them, and
    /// frees them in PyTorch's order.
    void train_a_step() {
        std::vector<void*> activations;
        for (std::size_t layer = 0; layer < layers; ++layer) {
            activations.push_back(allocate(bytes_of(layer), stream_));
            content().fill(activations[layer], bytes_of(layer), number(layer), stream_);
        }
        for (std::size_t layer = layers; layer-- > 0;) {
            void* const gradient = allocate(bytes_of(layer), stream_);
            content().fill(gradient, bytes_of(layer), 99, stream_);
            content().expect(activations[layer], bytes_of(layer), number(layer), stream_);
            free(activations[layer], bytes_of(layer), stream_);
            free(gradient, bytes_of(layer), stream_);
        }
    }

private:
    static constexpr std::size_t layers = 8;
    static std::size_t bytes_of(std::size_t layer) {
        return (layer + 1) * quick_or_long(mib / 8, 8 * mib) + 1000;
    }
    static std::uint8_t number(std::size_t layer) { return static_cast<std::uint8_t>(layer + 1); }

    std::optional<Content> content_;
    StreamHandle stream_ = nullptr;
};

TEST_F(PyTorchsCalls, RepeatedStepsKeepContentsAndTakeNoMemoryFromTheDevice) {
    for (int i = 0; i < 3; ++i) train_a_step();  // until free blocks fit the steps
    const auto& allocator = get_runtime({DeviceType::cuda, card}).allocator();
    const std::uint64_t growths = allocator.statistics().growths;
    for (int i = 0; i < quick_or_long(10, 200); ++i) train_a_step();
    content().compare();
    EXPECT_EQ(allocator.statistics().growths, growths);
}

TEST_F(PyTorchsCalls, BlockOfASizeFreedBeforeCallsNoFunctionOfTheDriver) {
    free(allocate(mib, stream()), mib, stream());
    const auto before = driver_calls();
    for (int i = 0; i < 10; ++i) free(allocate(mib, stream()), mib, stream());
    EXPECT_EQ(driver_calls(), before);
}

TEST_F(PyTorchsCalls, RecordedStreamsFinishTheirWork) {
    const StreamHandle loader = make_stream();
    const std::size_t bytes = quick_or_long(mib, 16 * mib);
    for (int i = 0; i < quick_or_long(20, 200); ++i) {
        void* const batch = allocate(bytes, loader);
        content().fill(batch, bytes, static_cast<std::uint8_t>(i), loader);
        content().order(loader, stream());
        tensorpool_torch_record_stream(batch, stream());
        content().keep_busy(stream());
        content().expect(batch, bytes, static_cast<std::uint8_t>(i), stream());
        free(batch, bytes, loader);
    }
    content().compare();
}

TEST_F(PyTorchsCalls, ThreeGraphsShareTheirPool) {
    if (!backend().abilities(card).graph_capture) GTEST_SKIP() << "the driver has no graphs";
    const std::pair<std::uint64_t, std::uint64_t> pool = {0, 1};
    constexpr std::size_t bytes = 4 * mib;
    std::vector<std::pair<device::cuda::GraphExec, void*>> graphs;  // with their results
    for (std::uint8_t byte = 1; byte <= 3; ++byte) {
        tensorpool_torch_begin_allocate_to_pool(card, pool,
                                                [this](void* of) { return of == stream(); });
        begin_capture(stream());
        void* const inside = allocate(bytes, stream());
        void* const result = allocate(bytes, stream());
        content().fill(inside, bytes, byte, stream());
        EXPECT_EQ(
            backend().copy_async(card, CopyKind::device_to_device, result, inside, bytes, stream()),
            DeviceStatus::ok);
        free(inside, bytes, stream());
        const device::cuda::GraphExec graph = end_capture(stream());
        tensorpool_torch_end_allocate_to_pool(card, pool);
        graphs.emplace_back(graph, result);
    }
    for (int round = 0; round < quick_or_long(3, 50); ++round) {
        for (const auto& [graph, result] : graphs) launch(graph, stream());
        for (std::size_t i = 0; i < graphs.size(); ++i) {
            content().expect(graphs[i].second, bytes, static_cast<std::uint8_t>(i + 1), stream());
        }
        train_a_step();
    }
    content().compare();
    for (const auto& [graph, result] : graphs) {
        free(result, bytes, stream());
        tensorpool_torch_release_pool(card, pool);
        destroy(graph);
    }
    const auto& allocator = get_runtime({DeviceType::cuda, card}).allocator();
    const std::size_t more = allocator.statistics().free_bytes + mib;
    free(allocate(more, stream()), more, stream());
    EXPECT_EQ(allocator.statistics().captured_bytes, 0U);
}

TEST_F(PyTorchsCalls, OutOfMemoryThrowsAndStepsGoOn) {
    train_a_step();
    const std::size_t bytes = 2 * memory_info().total_bytes;
    try {
        (void)allocate(bytes, stream());
        ADD_FAILURE() << bytes << " bytes were allocated";
    } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("cuda:0: allocate: " + std::to_string(bytes)),
                  std::string::npos)
            << error.what();
    }
    train_a_step();
    content().compare();
}

}  // namespace
}  // namespace tensorpool::stress::cuda
