#include <tensorpool/device/device.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <unordered_set>

namespace tensorpool {
namespace {

TEST(Device, IsWrittenAsTypeAndIndex) {
    EXPECT_EQ(to_string(Device{}), "cpu:0");
    EXPECT_EQ(to_string(Device{DeviceType::cuda, 3}), "cuda:3");
    EXPECT_STREQ(to_string(DeviceType::simulated), "simulated");
}

TEST(Device, IsParsedFromItsText) {
    EXPECT_EQ(parse_device("cuda:3"), (Device{DeviceType::cuda, 3}));
    EXPECT_EQ(parse_device("simulated"), (Device{DeviceType::simulated, 0}));
}

TEST(Device, InvalidTextIsRejectedWithExpectation) {
    for (const char* const text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
        try {
            (void)parse_device(text);
            ADD_FAILURE() << text;
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find("expected cpu, cuda"), std::string::npos);
        }
    }
}

TEST(Device, HashDependsOnTypeAndIndex) {
    const std::unordered_set<Device> devices = {
        {DeviceType::cpu, 0}, {DeviceType::cuda, 0}, {DeviceType::cuda, 1}, {DeviceType::cuda, 1}};
    EXPECT_EQ(devices.size(), 3u);
}

}  // namespace
}  // namespace tensorpool
