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
INSTANTIATE_TEST_SUITE_P(Host, BackendWhereFunctionsMayBlock, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendThatKnowsHandles, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutExportableMemory, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithCapture, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithCaptureThatKnowsHandles, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithStreamOrder, host, name_of);
INSTANTIATE_TEST_SUITE_P(Host, BackendWithManagedAdvice, host, name_of);

// Virtual memory needs Linux, with a kernel that supports the calls it uses.
const auto of_machine = ::testing::Values(
    BackendFactory{"host", make_host, /*knows_handles=*/true, /*is_of_machine=*/true});
#ifdef __linux__
INSTANTIATE_TEST_SUITE_P(Host, BackendWithVirtualMemory, of_machine, name_of);
#else
INSTANTIATE_TEST_SUITE_P(Host, BackendWithoutVirtualMemory, of_machine, name_of);
#endif
}  // namespace
}  // namespace tensorpool::testing
