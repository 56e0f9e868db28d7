#include "device/cuda/cuda_state.hpp"

#include <gtest/gtest.h>

namespace tensorpool::device::cuda {
namespace {

TEST(DriverStatus, IsNoFailureForSuccessAndNotReady) {
    EXPECT_EQ(status_of(Result::success), DeviceStatus::ok);
    EXPECT_EQ(status_of(Result::not_ready), DeviceStatus::not_ready);
    EXPECT_EQ(status_of(Result::peer_access_already_enabled), DeviceStatus::ok);
}

TEST(DriverStatus, DistinguishesErrorsThatTheCallerCanFix) {
    EXPECT_EQ(status_of(Result::out_of_memory), DeviceStatus::out_of_memory);
    // 217: the devices are no peers. 711: one of them has as many peers as it can have.
    for (const unsigned result : {217u, 711u, 801u}) {
        EXPECT_EQ(status_of(Result{result}), DeviceStatus::not_supported) << result;
    }
    for (const Result result :
         {Result::invalid_value, Result::invalid_device, Result::invalid_context,
          Result::invalid_handle, Result::host_memory_not_registered}) {
        EXPECT_EQ(status_of(result), DeviceStatus::invalid_argument);
    }
}

TEST(DriverStatus, IsInCaptureForAllErrorsOfCaptures) {
    for (unsigned result = 900; result <= 908; ++result) {
        EXPECT_EQ(status_of(Result{result}), DeviceStatus::in_capture) << result;
    }
}

TEST(DriverStatus, IsDeviceLostForPersistentErrors) {
    for (const unsigned result : {4u, 214u, 220u, 226u, 700u, 702u, 709u, 710u, 714u, 715u, 716u,
                                  717u, 718u, 719u, 721u, 810u, 911u}) {
        EXPECT_EQ(status_of(Result{result}), DeviceStatus::device_lost) << result;
    }
}

TEST(DriverStatus, IsFailedForOtherErrors) {
    for (const unsigned result : {3u, 205u, 701u, 999u, 12345u}) {
        EXPECT_EQ(status_of(Result{result}), DeviceStatus::failed) << result;
    }
}

}  // namespace
}  // namespace tensorpool::device::cuda
