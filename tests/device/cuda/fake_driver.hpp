#pragma once

#include <gtest/gtest.h>

#include <string>

#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/driver_api.hpp"
#include "lab/fake_cuda/controls.hpp"
#include "platform/process/dynamic_library.hpp"

namespace tensorpool::device::cuda {

/// Access to the fake driver of tests/lab/fake_cuda, which has threads of its own, and its
/// controls.
class FakeDriver : public ::testing::Test {
protected:
    static constexpr const char* path = TENSORPOOL_FAKE_CUDA;
    static constexpr const char* old_path = TENSORPOOL_FAKE_CUDA_OLD;
    static constexpr const char* broken_path = TENSORPOOL_FAKE_CUDA_BROKEN;

    FakeDriver() { EXPECT_TRUE(file_.open(path)) << file_.problem(); }
    /// Checks that the test's backends released everything that they created, and used no stream
    /// that had been destroyed.
    ~FakeDriver() override {
        EXPECT_EQ(held(), 0);
        EXPECT_EQ(violation(), "");
    }

    template <class Function>
    Function find(const char* name) {
        return reinterpret_cast<Function>(file_.find(name));
    }
    void set_device_count(int count) {
        find<fake_cuda::SetDeviceCount>("fake_cuda_set_device_count")(count);
    }
    void set_init_result(unsigned result) {
        find<fake_cuda::SetInitResult>("fake_cuda_set_init_result")(result);
    }
    void set_peers(bool peers) { find<fake_cuda::SetPeers>("fake_cuda_set_peers")(peers); }
    void set_rdma(bool reported, bool refused) {
        find<fake_cuda::SetRdma>("fake_cuda_set_rdma")(reported, refused);
    }
    void fail_next(const char* function, unsigned result) {
        find<fake_cuda::FailNext>("fake_cuda_fail_next")(function, result);
    }
    void lose_device(int device, unsigned result) {
        find<fake_cuda::LoseDevice>("fake_cuda_lose_device")(device, result);
    }
    /// Returns how often a function of the driver was called; with "" all functions together.
    unsigned long long calls(const char* function = "") {
        return find<fake_cuda::Calls>("fake_cuda_calls")(function);
    }
    std::string violation() { return find<fake_cuda::Violation>("fake_cuda_violation")(); }
    int held() { return find<fake_cuda::Held>("fake_cuda_held")(); }
    /// Calls `body` in the device's primary context.
    template <class Body>
    Result in_context(int device, Body body) {
        CUctx_st* context = nullptr;
        find<Result (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
        find<Result (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(context);
        const Result result = body();
        find<Result (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&context);
        find<Result (*)(int)>("cuDevicePrimaryCtxRelease")(device);
        return result;
    }
    CUctx_st* current_context() {
        CUctx_st* context = nullptr;
        find<int (*)(CUctx_st**)>("cuCtxGetCurrent")(&context);
        return context;
    }

private:
    platform::DynamicLibrary file_;
};

}  // namespace tensorpool::device::cuda
