#include "stress/cuda/card.hpp"

#include "lab/fake_cuda/controls.hpp"

namespace tensorpool::stress::cuda {
namespace {

using device::cuda::CaptureMode;
using device::cuda::Result;

device::cuda::Stream of_driver(StreamHandle stream) noexcept {
    return reinterpret_cast<device::cuda::Stream>(stream);
}

}  // namespace

CommandLine& command_line() noexcept {
    static CommandLine& line = *new CommandLine{platform::cuda_driver_name};
    return line;
}

// OnCard ----------------------------------------------------------------------------------------

void OnCard::SetUp() {
    backend_ = std::make_shared<CudaBackend>(command_line().library);
    if (backend_->device_count() == 0) GTEST_SKIP() << backend_->last_error();
    ASSERT_TRUE(driver_.load(command_line().library)) << driver_.problem;
    ASSERT_EQ(driver_.context_retain(&context_, card), Result::success);
    ASSERT_EQ(driver_.context_push(context_), Result::success);
}

void OnCard::TearDown() {
    if (context_ == nullptr) return;
    while (!streams_.empty()) destroy(*streams_.begin());
    device::cuda::Context popped = nullptr;
    EXPECT_EQ(driver_.context_pop(&popped), Result::success);
    EXPECT_EQ(driver_.context_release(card), Result::success);
    backend_.reset();
    const auto violation =
        reinterpret_cast<fake_cuda::Violation>(driver_.file.find("fake_cuda_violation"));
    if (violation != nullptr) EXPECT_STREQ(violation(), "");
}

StreamHandle OnCard::make_stream() {
    device::cuda::Stream stream = nullptr;
    EXPECT_EQ(driver_.stream_create(&stream, device::cuda::stream_non_blocking), Result::success);
    return *streams_.insert(reinterpret_cast<StreamHandle>(stream)).first;
}

void OnCard::destroy(StreamHandle stream) {
    streams_.erase(stream);
    EXPECT_EQ(driver_.stream_destroy(of_driver(stream)), Result::success);
}

void OnCard::begin_capture(StreamHandle stream) {
    ASSERT_EQ(driver_.begin_capture(of_driver(stream), CaptureMode::global), Result::success);
}

device::cuda::GraphExec OnCard::end_capture(StreamHandle stream) {
    device::cuda::Graph graph = nullptr;
    device::cuda::GraphExec ready = nullptr;
    EXPECT_EQ(driver_.end_capture(of_driver(stream), &graph), Result::success);
    if (graph == nullptr) return nullptr;
    EXPECT_EQ(driver_.graph_instantiate(&ready, graph, nullptr, nullptr, 0), Result::success);
    EXPECT_EQ(driver_.graph_destroy(graph), Result::success);
    return ready;
}

void OnCard::launch(device::cuda::GraphExec graph, StreamHandle stream) {
    EXPECT_EQ(driver_.graph_launch(graph, of_driver(stream)), Result::success);
}

void OnCard::destroy(device::cuda::GraphExec graph) {
    EXPECT_EQ(driver_.graph_exec_destroy(graph), Result::success);
}

DeviceMemoryInfo OnCard::memory_info() {
    DeviceMemoryInfo info;
    EXPECT_EQ(backend().memory_info(card, info), DeviceStatus::ok) << backend().last_error();
    return info;
}

std::optional<unsigned long long> OnCard::driver_calls() const {
    const auto calls = reinterpret_cast<fake_cuda::Calls>(driver_.file.find("fake_cuda_calls"));
    if (calls == nullptr) return std::nullopt;
    return calls("");
}

// AllocatorOnCard -------------------------------------------------------------------------------

void AllocatorOnCard::SetUp() {
    OnCard::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (GetParam() == Slabs::expandable && !backend().abilities(card).virtual_memory) {
        GTEST_SKIP() << "the card has no virtual memory";
    }
    replace_allocator(options());
}

void AllocatorOnCard::TearDown() {
    replace_allocator(std::nullopt);
    OnCard::TearDown();
}

CachingOptions AllocatorOnCard::options() const {
    CachingOptions options;
    options.expandable = GetParam() == Slabs::expandable;
    return options;
}

void AllocatorOnCard::replace_allocator(std::optional<CachingOptions> options) {
    allocator_.reset();
    if (!options.has_value()) return;
    allocator_ = std::make_unique<CachingAllocator>(backend(), card, *options);
}

INSTANTIATE_TEST_SUITE_P(Slabs, AllocatorOnCard, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& one) {
                             return one.param == Slabs::plain ? "plain" : "expandable";
                         });

}  // namespace tensorpool::stress::cuda
