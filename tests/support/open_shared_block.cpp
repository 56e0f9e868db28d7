// Opens a block that another process shares over the fake CUDA driver, checks that each byte is 7,
// and sets it to 9. Arguments: the number of a connected socket, and the driver's library.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/shared_block.hpp>

int main(int count, char** arguments) try {
    using namespace tensorpool;
    if (count != 3) return 2;
    CudaBackend backend(arguments[2]);
    const SharedBlock shared = SharedBlock::receive(std::atoi(arguments[1]));
    const OpenedBlock block(backend, 0, shared);
    std::vector<unsigned char> content(block.bytes());
    if (backend.copy(0, CopyKind::device_to_host, content.data(), block.data(), block.bytes()) !=
            DeviceStatus::ok ||
        content != std::vector<unsigned char>(block.bytes(), 7)) {
        return 3;
    }
    return backend.fill(0, block.data(), 9, block.bytes()) == DeviceStatus::ok ? 0 : 4;
} catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
}
