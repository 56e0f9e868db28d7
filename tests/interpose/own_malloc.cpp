// A program with a malloc of its own, but without the functions that the C library builds from it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

constexpr std::size_t room = std::size_t{64} << 20;
alignas(64) char memory[room];
std::size_t used = 0;
unsigned long foreign = 0;

bool is_own(const void* p) {
    return p >= memory && p < memory + room;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
    const std::size_t taken = (bytes + 31) / 16 * 16;
    if (taken > room - used) return nullptr;
    char* const block = memory + used + 16;
    used += taken;
    std::memcpy(block - sizeof bytes, &bytes, sizeof bytes);
    return block;
}
void free(void* p) {
    if (p != nullptr && !is_own(p)) ++foreign;
}
void* calloc(std::size_t count, std::size_t bytes) {
    void* const block = malloc(count * bytes);
    if (block != nullptr) std::memset(block, 0, count * bytes);
    return block;
}
void* realloc(void* p, std::size_t bytes) {
    void* const block = malloc(bytes);
    if (block == nullptr || p == nullptr) return block;
    if (!is_own(p)) ++foreign;
    std::size_t before = 0;
    std::memcpy(&before, static_cast<char*>(p) - sizeof before, sizeof before);
    std::memcpy(block, p, before < bytes ? before : bytes);
    return block;
}
}

int main() {
    auto* text = static_cast<char*>(reallocarray(nullptr, 10, 10));
    std::strcpy(text, "hello");
    for (const std::size_t count : {100, 1000, 100'000}) {
        text = static_cast<char*>(reallocarray(text, count, 20));
        if (!is_own(text) || std::strcmp(text, "hello") != 0) {
            std::fputs("reallocarray: not a block of the program's realloc\n", stderr);
            return 1;
        }
    }
    if (reallocarray(text, SIZE_MAX / 2, 4) != nullptr) {
        std::fputs("reallocarray: a product that overflows was served\n", stderr);
        return 1;
    }
    char* const copy = strdup(text);
    free(copy);
    free(text);
    return foreign == 0 ? 0 : 1;
}
