// cuGetProcAddress: the forms of each function and the CUDA versions in which they appeared, after
// the type names in NVIDIA's cudaTypedefs.h. Forms that the driver lacks are present as traps.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace {

struct Form {
    const char* name;
    int version;
    const char* exported;  // nullptr: a form other than the declared one
};

constexpr Form forms[] = {
    {"cuInit", 2000, "cuInit"},
    {"cuDriverGetVersion", 2020, "cuDriverGetVersion"},
    {"cuGetErrorString", 6000, "cuGetErrorString"},
    {"cuDeviceGetCount", 2000, "cuDeviceGetCount"},
    {"cuDeviceGet", 2000, "cuDeviceGet"},
    {"cuDeviceGetName", 2000, "cuDeviceGetName"},
    {"cuDeviceGetAttribute", 2000, "cuDeviceGetAttribute"},
    {"cuDevicePrimaryCtxRetain", 7000, "cuDevicePrimaryCtxRetain"},
    {"cuDevicePrimaryCtxRelease", 7000, "cuDevicePrimaryCtxRelease"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease"},
    {"cuCtxPushCurrent", 2000, nullptr},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuCtxPopCurrent", 2000, nullptr},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, nullptr},
    {"cuMemGetInfo", 2000, nullptr},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemAlloc", 2000, nullptr},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemFree", 2000, nullptr},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemAllocManaged", 6000, "cuMemAllocManaged"},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync"},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync"},
    {"cuDeviceGetDefaultMemPool", 11020, "cuDeviceGetDefaultMemPool"},
    {"cuMemPoolSetAttribute", 11020, "cuMemPoolSetAttribute"},
    {"cuMemPoolGetAttribute", 11020, "cuMemPoolGetAttribute"},
    {"cuMemPoolTrimTo", 11020, "cuMemPoolTrimTo"},
    {"cuMemAdvise", 8000, "cuMemAdvise"},
    {"cuMemAdvise", 12020, nullptr},
    {"cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync"},
    {"cuMemPrefetchAsync", 12020, nullptr},
    {"cuPointerGetAttribute", 4000, "cuPointerGetAttribute"},
    {"cuMemGetAllocationGranularity", 10020, "cuMemGetAllocationGranularity"},
    {"cuMemAddressReserve", 10020, "cuMemAddressReserve"},
    {"cuMemAddressFree", 10020, "cuMemAddressFree"},
    {"cuMemCreate", 10020, "cuMemCreate"},
    {"cuMemRelease", 10020, "cuMemRelease"},
    {"cuMemExportToShareableHandle", 10020, "cuMemExportToShareableHandle"},
    {"cuMemImportFromShareableHandle", 10020, "cuMemImportFromShareableHandle"},
    {"cuMemMap", 10020, "cuMemMap"},
    {"cuMemUnmap", 10020, "cuMemUnmap"},
    {"cuMemSetAccess", 10020, "cuMemSetAccess"},
    {"cuMemHostAlloc", 2020, "cuMemHostAlloc"},
    {"cuMemFreeHost", 2000, "cuMemFreeHost"},
    {"cuMemHostRegister", 4000, nullptr},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
    {"cuMemHostUnregister", 4000, "cuMemHostUnregister"},
    {"cuStreamCreate", 2000, "cuStreamCreate"},
    {"cuStreamCreateWithPriority", 5050, "cuStreamCreateWithPriority"},
    {"cuCtxGetStreamPriorityRange", 5050, "cuCtxGetStreamPriorityRange"},
    {"cuStreamDestroy", 2000, nullptr},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamSynchronize", 2000, "cuStreamSynchronize"},
    {"cuStreamQuery", 2000, "cuStreamQuery"},
    {"cuStreamGetId", 12000, "cuStreamGetId"},
    {"cuThreadExchangeStreamCaptureMode", 10010, "cuThreadExchangeStreamCaptureMode"},
    {"cuStreamWaitEvent", 3020, "cuStreamWaitEvent"},
    {"cuLaunchHostFunc", 10000, "cuLaunchHostFunc"},
    {"cuEventCreate", 2000, "cuEventCreate"},
    {"cuEventDestroy", 2000, nullptr},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventRecord", 2000, "cuEventRecord"},
    {"cuEventQuery", 2000, "cuEventQuery"},
    {"cuEventSynchronize", 2000, "cuEventSynchronize"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, nullptr},
    {"cuMemcpyAsync", 4000, "cuMemcpyAsync"},
    {"cuMemcpyHtoDAsync", 2000, nullptr},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
    {"cuMemcpyDtoHAsync", 2000, nullptr},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
    {"cuMemcpyDtoDAsync", 3000, nullptr},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
    {"cuMemsetD8Async", 3020, "cuMemsetD8Async"},
    {"cuDeviceCanAccessPeer", 4000, "cuDeviceCanAccessPeer"},
    {"cuCtxEnablePeerAccess", 4000, "cuCtxEnablePeerAccess"},
    {"cuMemcpyPeerAsync", 4000, "cuMemcpyPeerAsync"},
    {"cuStreamBeginCapture", 10000, nullptr},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamEndCapture", 10000, "cuStreamEndCapture"},
    {"cuStreamGetCaptureInfo", 10010, nullptr},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 12030, nullptr},
    {"cuGraphInstantiate", 10000, nullptr},
    {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, nullptr},
    {"cuGraphLaunch", 10000, "cuGraphLaunch"},
    {"cuGraphDestroy", 10000, "cuGraphDestroy"},
    {"cuGraphExecDestroy", 10000, "cuGraphExecDestroy"},
};

void trap() {
    std::fputs("fake_cuda: a function was called in a form of another CUDA version\n", stderr);
    std::abort();
}

/// Returns the newest form up to the version, or nullptr if the function did not exist yet.
const Form* find_form(const char* name, int version) {
    const Form* found = nullptr;
    for (const Form& form : forms) {
        if (std::strcmp(form.name, name) == 0 && form.version <= version) found = &form;
    }
    return found;
}

void* address_of(const Form& form) {
    if (form.exported == nullptr) return reinterpret_cast<void*>(trap);
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(trap), &own);
    void* const library = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    void* const address = dlsym(library, form.exported);
    dlclose(library);
    return address;
}

}  // namespace

extern "C" {

Result cuGetProcAddress_v2(const char* name, void** address, int version, std::uint64_t flags,
                           AddressQuery* query) {
    *address = nullptr;
    if (flags != legacy_stream || version > driver().version) return Result::invalid_value;
    const Form* const form = find_form(name, version);
    if (form != nullptr) *address = address_of(*form);
    if (query != nullptr) {
        *query = *address != nullptr                 ? AddressQuery::success
                 : find_form(name, 99999) != nullptr ? AddressQuery::version_not_sufficient
                                                     : AddressQuery::symbol_not_found;
    }
    return Result::success;
}

// The form of CUDA 11.3, which fails if the other form leaves the address empty.
Result cuGetProcAddress(const char* name, void** address, int version, std::uint64_t flags) {
    AddressQuery query = AddressQuery::success;
    const Result result = cuGetProcAddress_v2(name, address, version, flags, &query);
    return result == Result::success && *address == nullptr ? Result::not_found : result;
}

}  // extern "C"
