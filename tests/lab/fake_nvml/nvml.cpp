// A fake of NVML with the functions that tensorpool calls, declared as NVIDIA's "NVML API Reference
// Guide" does. The variable FAKE_NVML says what it has: "cards", "none", or "no_driver".

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Return : int { success = 0, invalid_argument = 2, not_found = 6, driver_not_loaded = 9 };

struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct Card {
    const char* name;
    Memory memory;
};

constexpr unsigned long long gib = 1ULL << 30;
constexpr Card cards[] = {{"Busy card", {24 * gib, 2 * gib, 22 * gib}},
                          {"Free card", {16 * gib, 15 * gib, gib}}};

int uses = 0;

bool is(const char* value) {
    const char* const set = std::getenv("FAKE_NVML");
    return set != nullptr && std::strcmp(set, value) == 0;
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
    if (is("no_driver")) return driver_not_loaded;
    ++uses;
    return success;
}

Return nvmlShutdown() {
    --uses;
    return success;
}

const char* nvmlErrorString(Return result) {
    return result == driver_not_loaded ? "Driver Not Loaded" : "Unknown Error";
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
    *count = is("cards") ? 2 : 0;
    return uses > 0 ? success : invalid_argument;
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, const Card** card) {
    if (index >= 2) return not_found;
    *card = &cards[index];
    return success;
}

Return nvmlDeviceGetName(const Card* card, char* name, unsigned length) {
    std::snprintf(name, length, "%s", card->name);
    return success;
}

Return nvmlDeviceGetMemoryInfo(const Card* card, Memory* memory) {
    *memory = card->memory;
    return success;
}

}  // extern "C"
