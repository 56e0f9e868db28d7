#include <memory>

#include <tensorpool/device/host_backend.hpp>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

MadeBackend make_host() {
    return {std::make_unique<HostBackend>(), ""};
}

const auto host = ::testing::Values(BackendFactory{"host", make_host});
INSTANTIATE_TEST_SUITE_P(Host, BackendContract, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendThatKnowsHandles, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutExportableMemory, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutCapture, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithStreamOrder, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithManagedAdvice, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutVirtualMemory, host, name_of);

}  // namespace
}  // namespace tensorpool::testing
