#include <tensorpool/device/runtimes.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

// Types cannot be removed, so each test registers a name of its own.

/// A vendor's backend, which learns its type when it is registered.
struct VendorBackend final : SimulatedBackend {
    using SimulatedBackend::SimulatedBackend;
    DeviceType type() const noexcept override { return own_type; }
    DeviceType own_type = DeviceType::simulated;
};

TEST(RegisteredDeviceType, NamesItsDevicesEverywhere) {
    const auto backend = std::make_shared<VendorBackend>(lazy_devices(2));
    const DeviceType type = register_device_type("npu", backend);
    backend->own_type = type;
    EXPECT_GE(static_cast<std::size_t>(type), known_device_types);
    EXPECT_STREQ(to_string(type), "npu");
    EXPECT_EQ(parse_device("npu:1"), (Device{type, 1}));
    EXPECT_EQ(device_count(type), 2);
    Runtime& runtime = get_runtime({type, 1});
    EXPECT_EQ(to_string(runtime.device()), "npu:1");
    const DeviceAllocation memory = runtime.allocate(1000);
    EXPECT_EQ(std::string(runtime.allocator().statistics().device), "npu:1");
    EXPECT_EQ(runtime.allocator().memory_device().type, 12) << "an extension device of DLPack";
    EXPECT_THROW((void)get_runtime({type, 2}), std::invalid_argument);
}

TEST(RegisteredDeviceType, IsRefusedWithoutBackendOrUsableName) {
    const auto backend = std::make_shared<SimulatedBackend>(lazy_devices());
    const auto text_of = [&](const char* name) -> std::string {
        try {
            (void)register_device_type(name, backend);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "";
    };
    for (const char* const name : {"", "Npu", "1npu", "a:0", "elevenchars"}) {
        EXPECT_NE(text_of(name).find("found the name \"" + std::string(name)), std::string::npos)
            << text_of(name);
    }
    EXPECT_NE(text_of("cuda").find("expected one that no type has; there are cpu, cuda"),
              std::string::npos);
    EXPECT_THROW((void)register_device_type("tpu", nullptr), std::invalid_argument);
    EXPECT_THROW((void)parse_device("tpu"), std::invalid_argument) << "nothing was registered";
}

}  // namespace
}  // namespace tensorpool
