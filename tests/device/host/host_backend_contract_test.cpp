#include <memory>

#include <tensorpool/device/host_backend.hpp>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

MadeBackend make_host() {
    return {std::make_unique<HostBackend>(), ""};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Host, BackendContract,
                         ::testing::Values(BackendFactory{"host", make_host, true}), name_of);

}  // namespace tensorpool::testing
