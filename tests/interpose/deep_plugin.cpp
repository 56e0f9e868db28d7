// A plugin of deep_binding.cpp.

#include <cstdlib>
#include <cstring>

extern "C" void* give_block(std::size_t bytes) {
    void* const block = std::malloc(bytes);
    std::memset(block, 1, bytes);
    return block;
}
extern "C" void take_block(void* p) {
    std::free(p);
}
