#include <tensorpool/dlpack.hpp>

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/arena.hpp>

namespace tensorpool {
namespace {

template <class Action>
std::string error_of(const Action& action) {
    try {
        action();
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

void drop(DLManagedTensor* tensor) {
    tensor->deleter(tensor);
}

TEST(DlpackTypes, AreDataTypes) {
    const DLDataType type = dlpack_type(DataType::of<float>());
    EXPECT_EQ(type.code, kDLFloat);
    EXPECT_EQ(type.bits, 32);
    EXPECT_EQ(type.lanes, 1);
    EXPECT_EQ(data_type(DlpackType<std::uint8_t>::value), DataType::of<std::uint8_t>());
    EXPECT_EQ(data_type(DLDataType{kDLFloat, 32, 4}),
              (DataType{.code = DataCode::floating, .bits = 32, .lanes = 4}));
}

TEST(DlpackTypes, OfOtherTypesAreRefused) {
    for (const DataType& type : {DataType{}, *find_ggml_type("Q4_K"), *find_numpy_type("<c32"),
                                 *find_numpy_type("|S70000")}) {
        EXPECT_THROW((void)dlpack_type(type), std::invalid_argument) << to_string(type);
    }
}

TEST(ToDlpack, DescribesTheBlockAndFreesIt) {
    MemoryPool pool;
    PooledArray<float> array(pool, 6);
    const float* const data = array.data();
    DLManagedTensor* const tensor = to_dlpack(std::move(array), {2, 3});
    EXPECT_EQ(tensor->dl_tensor.data, data);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
    EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
    EXPECT_EQ(tensor->dl_tensor.ndim, 2);
    EXPECT_EQ(tensor->dl_tensor.shape[0], 2);
    EXPECT_EQ(tensor->dl_tensor.shape[1], 3);
    EXPECT_EQ(tensor->dl_tensor.strides[0], 3);
    EXPECT_EQ(tensor->dl_tensor.strides[1], 1);
    EXPECT_EQ(tensor->dl_tensor.byte_offset, 0U);
    EXPECT_TRUE(array.empty());  // NOLINT: the test checks the moved-from object
    EXPECT_GT(pool.get_total_allocated(), 0U);
    drop(tensor);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(ToDlpack, WithoutAShapeHasOneDimension) {
    DLManagedTensor* const tensor = to_dlpack(PooledArray<int>(7));
    EXPECT_EQ(tensor->dl_tensor.ndim, 1);
    EXPECT_EQ(tensor->dl_tensor.shape[0], 7);
    drop(tensor);
}

TEST(ToDlpack, ExportsABlock) {
    MemoryPool pool;
    PooledAllocation block(pool, 100 * sizeof(double), 256);
    DLManagedTensor* const tensor = to_dlpack<double>(std::move(block), {10, 10});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->dl_tensor.data) % 256, 0U);
    EXPECT_EQ(tensor->dl_tensor.dtype.bits, 64);
    drop(tensor);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(ToDlpack, ExportsABlockOfAnArena) {
    Arena arena;
    PooledArray<float> array(arena, 6);
    DLManagedTensor* const tensor = to_dlpack(std::move(array), {2, 3});
    EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
    EXPECT_EQ(arena.used(), 64U);
    drop(tensor);
    EXPECT_EQ(arena.used(), 0U);
}

/// A source whose memory is that of a device.
struct DeviceSource {
    enum class Stream { seven };
    HeldBlock hold(std::size_t bytes, Stream stream) {
        static constexpr SourceFunctions functions = {
            .name = "device of the test",
            .give_back = [](void* source,
                            const HeldBlock&) { --static_cast<DeviceSource*>(source)->held; },
            .host_pointer = [](void*, const HeldBlock&) -> void* { return nullptr; },
            .device =
                [](void*) {
                    return SourceDevice{kDLCUDA, 3};
                },
        };
        ++held;
        EXPECT_EQ(stream, Stream::seven);
        return {&memory, bytes, BlockOwner(this, functions, 256)};
    }
    int held = 0;
    char memory = 0;
};

TEST(ToDlpack, NamesTheDeviceOfTheBlock) {
    DeviceSource source;
    PooledAllocation block(source, 400, DeviceSource::Stream::seven);
    DLManagedTensor* const tensor = to_dlpack<float>(std::move(block), {10, 10});
    EXPECT_EQ(tensor->dl_tensor.data, &source.memory);
    EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
    EXPECT_EQ(tensor->dl_tensor.device.device_id, 3);
    EXPECT_EQ(source.held, 1);
    EXPECT_EQ(error_of([&] { (void)from_dlpack<float>(tensor); }),
              "tensorpool: from_dlpack: memory of CUDA 3, expected CPU");
    drop(tensor);
    EXPECT_EQ(source.held, 0);
}

TEST(ToDlpack, StridesDescribeAnotherOrder) {
    DLManagedTensor* const tensor = to_dlpack(PooledArray<float>(6), {2, 3}, {1, 2});
    EXPECT_EQ(tensor->dl_tensor.strides[0], 1);
    EXPECT_EQ(tensor->dl_tensor.strides[1], 2);
    drop(tensor);
    drop(to_dlpack(PooledArray<float>(1), {1000, 1000}, {0, 0}));  // one element, broadcast
}

TEST(ToDlpack, ExportsNoElementsAndNoDimensions) {
    drop(to_dlpack(PooledArray<float>(0), {0, 5}));
    DLManagedTensor* const scalar = to_dlpack(PooledArray<float>(1), {});
    EXPECT_EQ(scalar->dl_tensor.ndim, 0);
    drop(scalar);
}

TEST(ToDlpack, RejectsShapesBeyondTheArrayAndKeepsIt) {
    MemoryPool pool;
    PooledArray<float> array(pool, 6);
    const auto error_for = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
        return error_of([&] {
            static_cast<void>(to_dlpack(std::move(array), std::move(shape), std::move(strides)));
        });
    };
    EXPECT_EQ(error_for({2, 4}, {}),
              "tensorpool: to_dlpack: 6 elements, expected the 8 of shape (2, 4)");
    EXPECT_EQ(error_for({2, -3}, {}),
              "tensorpool: to_dlpack: shape (2, -3), expected no negative extent");
    EXPECT_EQ(error_for({2, 3}, {1}),
              "tensorpool: to_dlpack: 1 strides, expected 2 as of shape (2, 3)");
    EXPECT_EQ(error_for({2, 3}, {4, 1}),
              "tensorpool: to_dlpack: strides (4, 1) of shape (2, 3), expected to stay within the "
              "6 elements");
    EXPECT_NE(error_for({2, 3}, {-1, 1}), "");
    EXPECT_NE(error_for({3, 3}, {INT64_MAX, 1}), "");
    EXPECT_NE(error_for({INT64_MAX, INT64_MAX}, {}), "");
    EXPECT_EQ(array.size(), 6U);
    EXPECT_TRUE(pool.owns(array.data()));
}

TEST(ToDlpack, AnyThreadMayCallTheDeleter) {
    MemoryPool pool;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        std::vector<DLManagedTensor*> made;
        for (int i = 0; i < 100; ++i) made.push_back(to_dlpack(PooledArray<float>(pool, 1000)));
        threads.emplace_back([made] {
            for (DLManagedTensor* const tensor : made) drop(tensor);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(pool.get_total_allocated(), 0U);
    EXPECT_EQ(pool.get_deallocation_count(), 400U);
}

/// A tensor of another library that counts the calls of its deleter.
struct Foreign {
    std::vector<float> values = std::vector<float>(24);
    std::vector<std::int64_t> shape = {2, 3};
    std::vector<std::int64_t> strides = {3, 1};
    int deleter_calls = 0;
    DLManagedTensor managed{
        {values.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0},
        this,
        [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleter_calls; }};
    DLTensor& tensor = managed.dl_tensor;

    Foreign() { std::iota(values.begin(), values.end(), 0.0F); }

    template <class T = float>
    std::string error() {
        const std::string text = error_of([&] { static_cast<void>(from_dlpack<T>(&managed)); });
        EXPECT_EQ(deleter_calls, 0) << "a rejected tensor stays the caller's";
        return text;
    }
};

TEST(FromDlpack, ReturnsElementsShapeAndStridesAndCallsTheDeleterOnce) {
    Foreign foreign;
    {
        DlpackTensor<float> first = from_dlpack<float>(&foreign.managed);
        const DlpackTensor<float> tensor = std::move(first);
        EXPECT_FALSE(first);  // NOLINT: the test checks the moved-from object
        EXPECT_TRUE(tensor);
        EXPECT_EQ(tensor.data(), foreign.values.data());
        EXPECT_EQ(tensor.size(), 6U);
        EXPECT_EQ(tensor.shape()[1], 3);
        EXPECT_EQ(tensor.strides()[0], 3);
        EXPECT_TRUE(tensor.is_contiguous());
        EXPECT_EQ(tensor.elements()[5], 5.0F);
        EXPECT_EQ(foreign.deleter_calls, 0);
    }
    EXPECT_EQ(foreign.deleter_calls, 1);
}

TEST(FromDlpack, ReleaseReturnsTheTensorWithoutCallingTheDeleter) {
    Foreign foreign;
    DlpackTensor<float> tensor = from_dlpack<float>(&foreign.managed);
    EXPECT_EQ(tensor.release(), &foreign.managed);
    EXPECT_FALSE(tensor);
    EXPECT_EQ(tensor.data(), nullptr);
    EXPECT_EQ(tensor.size(), 0U);
    EXPECT_EQ(tensor.release(), nullptr);
    EXPECT_EQ(foreign.deleter_calls, 0);
}

TEST(FromDlpack, DataIncludesTheByteOffset) {
    Foreign foreign;
    foreign.tensor.byte_offset = 8;
    const auto tensor = from_dlpack<const float>(&foreign.managed);
    EXPECT_EQ(tensor.data(), foreign.values.data() + 2);
    EXPECT_EQ(tensor.elements()[5], 7.0F);
}

TEST(FromDlpack, TensorWithoutStridesIsCompact) {
    Foreign foreign;
    foreign.tensor.strides = nullptr;
    const auto tensor = from_dlpack<float>(&foreign.managed);
    EXPECT_EQ(tensor.strides()[0], 3);
    EXPECT_EQ(tensor.strides()[1], 1);
    EXPECT_TRUE(tensor.is_contiguous());
}

TEST(FromDlpack, TensorWithoutADeleterIsNeverFreed) {
    Foreign foreign;
    foreign.managed.deleter = nullptr;
    EXPECT_EQ(from_dlpack<float>(&foreign.managed).size(), 6U);
}

TEST(FromDlpack, ElementsOfATransposedTensorAreRejected) {
    Foreign foreign;
    foreign.strides = {1, 2};
    foreign.tensor.strides = foreign.strides.data();
    const auto tensor = from_dlpack<float>(&foreign.managed);
    EXPECT_FALSE(tensor.is_contiguous());
    EXPECT_EQ(tensor.strides()[1], 2);
    EXPECT_EQ(error_of([&] { static_cast<void>(tensor.elements()); }),
              "tensorpool: from_dlpack: strides (1, 2) of shape (2, 3), expected (3, 1)");
}

TEST(FromDlpack, StridesOfASingleElementAreIgnored) {
    Foreign foreign;
    foreign.shape = {1, 3};
    foreign.tensor.shape = foreign.shape.data();
    foreign.tensor.strides[0] = 77;
    EXPECT_TRUE(from_dlpack<float>(&foreign.managed).is_contiguous());
}

TEST(FromDlpack, TensorWithoutElementsNeedsNoData) {
    Foreign foreign;
    foreign.shape = {0, 3};
    foreign.tensor.shape = foreign.shape.data();
    foreign.tensor.data = nullptr;
    const auto tensor = from_dlpack<float>(&foreign.managed);
    EXPECT_EQ(tensor.data(), nullptr);
    EXPECT_TRUE(tensor.elements().empty());
}

TEST(FromDlpack, RejectsAnotherDevice) {
    Foreign foreign;
    foreign.tensor.device = {kDLCUDA, 1};
    EXPECT_EQ(foreign.error(), "tensorpool: from_dlpack: memory of CUDA 1, expected CPU");
    foreign.tensor.device.device_type = static_cast<DLDeviceType>(15);
    EXPECT_EQ(foreign.error(), "tensorpool: from_dlpack: memory of device type 15 1, expected CPU");
}

TEST(FromDlpack, RejectsAnotherType) {
    Foreign foreign;
    EXPECT_EQ(foreign.error<std::complex<float>>(),
              "tensorpool: from_dlpack: elements of type float32, expected complex64");
    EXPECT_EQ(foreign.error<const std::int8_t>(),
              "tensorpool: from_dlpack: elements of type float32, expected int8");
    foreign.tensor.dtype = {kDLBfloat, 16, 4};
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: elements of type bfloat16x4, expected float32");
    foreign.tensor.dtype = {kDLFloat, 32, 4};
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: elements of type float32x4, expected float32");
    foreign.tensor.dtype = {kDLFloat, 64, 1};
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: elements of type float64, expected float32");
    foreign.tensor.dtype = {kDLUInt, 32, 1};
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: elements of type uint32, expected float32");
    foreign.tensor.dtype = {17, 32, 1};
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: elements of type code 17 of 32, expected float32");
}

TEST(FromDlpack, RejectsAMisalignedAddress) {
    Foreign foreign;
    foreign.tensor.byte_offset = 2;
    EXPECT_EQ(
        foreign.error(),
        "tensorpool: from_dlpack: an address 2 bytes past a multiple of 4, expected a multiple");
}

TEST(FromDlpack, RejectsAnInvalidTensor) {
    EXPECT_EQ(error_of([] { static_cast<void>(from_dlpack<float>(nullptr)); }),
              "tensorpool: from_dlpack: nullptr, expected a DLManagedTensor");
    Foreign foreign;
    foreign.tensor.data = nullptr;
    EXPECT_EQ(foreign.error(), "tensorpool: from_dlpack: no data, expected that of 6 elements");
    foreign.shape[0] = -2;
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: shape (-2, 3), expected no negative extent");
    foreign.shape = {INT64_MAX, INT64_MAX};
    foreign.tensor.shape = foreign.shape.data();
    EXPECT_NE(foreign.error(), "");
    foreign.tensor.shape = nullptr;
    EXPECT_EQ(foreign.error(),
              "tensorpool: from_dlpack: 2 dimensions without a shape, expected one");
    foreign.tensor.ndim = -1;
    EXPECT_NE(foreign.error(), "");
}

TEST(FromDlpack, ImportsWhatToDlpackExported) {
    MemoryPool pool;
    PooledArray<std::complex<double>> array(pool, 12);
    const auto* const data = array.data();
    {
        const auto tensor = from_dlpack<std::complex<double>>(to_dlpack(std::move(array), {3, 4}));
        EXPECT_EQ(tensor.data(), data);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(ToDlpackOfATensorAllocation, HasItsShapeTypeAndMemory) {
    MemoryPool pool;
    TensorAllocation tensor = empty(pool, {3, 4}, {.code = DataCode::bfloat, .bits = 16});
    const void* const data = tensor.get();
    DLManagedTensor* const exported = to_dlpack(std::move(tensor));
    EXPECT_EQ(exported->dl_tensor.data, data);
    EXPECT_EQ(exported->dl_tensor.device.device_type, kDLCPU);
    EXPECT_EQ(exported->dl_tensor.dtype.code, kDLBfloat);
    EXPECT_EQ(exported->dl_tensor.dtype.bits, 16);
    EXPECT_EQ(exported->dl_tensor.dtype.lanes, 1);
    ASSERT_EQ(exported->dl_tensor.ndim, 2);
    EXPECT_EQ(exported->dl_tensor.shape[1], 4);
    EXPECT_EQ(exported->dl_tensor.strides[0], 4);
    exported->deleter(exported);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(ToDlpackOfATensorAllocation, RejectsBlockTypesOfGgmlAndKeepsTheTensor) {
    TensorAllocation tensor = empty({256}, *find_ggml_type("Q4_K"));
    EXPECT_EQ(error_of([&] { static_cast<void>(to_dlpack(std::move(tensor))); }),
              "tensorpool: to_dlpack: a tensor of Q4_K, expected a type of DLPack");
    EXPECT_NE(tensor.get(), nullptr);  // NOLINT: the test checks the moved-from object
}

}  // namespace
}  // namespace tensorpool
