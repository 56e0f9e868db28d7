#include "platform/memory/memory_limits_linux.hpp"

#include <sys/mman.h>

#include "platform/files/system_files_linux.hpp"

namespace tensorpool::platform {
namespace {

/// Which memory gets such pages: none, memory that requests them (`requested`), or all.
enum class Setting : std::uint8_t { missing, never, requested, always, inherit };

/// Reads the setting, which is the word in brackets: `always inherit [madvise] never`.
Setting read_setting(Path& folder, std::string_view file) noexcept {
    ShortLineReader lines(LongerPath(folder, file).c_str());
    std::string_view line;
    if (!lines.next(line)) return Setting::missing;
    if (line.find("[never]") != line.npos) return Setting::never;
    if (line.find("[inherit]") != line.npos) return Setting::inherit;
    return line.find("[always]") != line.npos ? Setting::always : Setting::requested;
}

Setting setting_of_size(Path& folder, std::size_t bytes) noexcept {
    char digits[24];
    const char* const end = std::to_chars(digits, digits + sizeof digits, bytes / 1024).ptr;
    const LongerPath size(folder, "/hugepages-");
    const LongerPath number(folder, {digits, static_cast<std::size_t>(end - digits)});
    return read_setting(folder, "kB/enabled");
}

}  // namespace

FolioSizes read_folio_sizes(std::string_view text) noexcept {
    Path folder(text);
    const Setting common = read_setting(folder, "/enabled");
    const auto effective = [&](Setting setting) {
        return setting == Setting::inherit || setting == Setting::missing ? common : setting;
    };
    // Kernels before 6.8 have only the common setting.
    const Setting huge = effective(setting_of_size(folder, huge_page_bytes));
    if (huge == Setting::always) return {};
    FolioSizes sizes{.huge = huge == Setting::requested};
    // The kernel does not have a size of two pages.
    for (std::size_t bytes = huge_page_bytes / 2; bytes >= 4 * page_bytes(); bytes /= 2) {
        const Setting setting = setting_of_size(folder, bytes);
        if (setting == Setting::missing || effective(setting) != Setting::requested) continue;
        sizes.medium = bytes;
        break;
    }
    return sizes;
}

FolioSizes folio_sizes() noexcept {
    return read_folio_sizes("/sys/kernel/mm/transparent_hugepage");
}

bool prefer_medium_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = at + bytes;
    while (at < end) {
        const std::uintptr_t piece_end =
            std::min(base::align_down(at, huge_page_bytes) + huge_page_bytes, end);
        if (base::is_aligned(at, huge_page_bytes)) at += page_bytes();
        if (at < piece_end &&
            madvise(reinterpret_cast<void*>(at), piece_end - at, MADV_HUGEPAGE) != 0) {
            return false;
        }
        at = piece_end;
    }
    return true;
}

bool prefer_small_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return madvise(address, bytes, MADV_NOHUGEPAGE) == 0;
}

}  // namespace tensorpool::platform
