#pragma once

#include <istream>
#include <map>
#include <set>
#include <string>

namespace tensorpool::architecture {

/// The contents of a file such as lib/layers.txt: the layers, the layers that each may use, the
/// layer of each public header, and the headers of other libraries that it may include. Some layers
/// are products, which no layer of the core may use. A facade stands outside of the core too, and
/// of products it includes only tables of records, `*_table.hpp`.
class LayerTable {
public:
    /// Reads the table. Throws std::runtime_error with `name` and the line number for a line that
    /// is neither `layer NAME USED…`, `product NAME USED…`, `facade NAME USED…`, `header FILE LAYER
    /// FOREIGN…`, `folder FOLDER FOREIGN…`, a comment, nor blank. Also throws if a layer uses one
    /// that is defined on a later line, as a layer may only use layers below it, or a product.
    static LayerTable read(std::istream& text, const std::string& name = "lib/layers.txt");

    bool has(const std::string& layer) const { return used_by_.contains(layer); }
    /// Returns whether `layer` may use `used`. A layer may always use itself.
    bool may_use(const std::string& layer, const std::string& used) const;
    /// Returns whether `layer` may include a file of `used`.
    bool may_include_file(const std::string& layer, const std::string& used,
                          const std::string& file) const;
    /// Returns the layers that `layer` may use, for messages: "base, platform" or "the standard
    /// library only".
    std::string allowed(const std::string& layer) const;

    /// The layer of each public header, by its path below include/tensorpool.
    const std::map<std::string, std::string>& headers() const { return headers_; }
    /// Returns true if the line of this public header lists `included`, which is a header of
    /// another library, or lists a folder (ending with a slash) that contains it.
    bool may_include(const std::string& header, const std::string& included) const;
    /// Returns true if a line for this folder below lib (without a slash at the end) lists
    /// `included`.
    bool folder_may_include(const std::string& folder, const std::string& included) const {
        return may_include(folder + '/', included);
    }

private:
    void add_layer(std::istream& words, const std::string& kind);
    void add_header(std::istream& words);
    void add_folder(std::istream& words);

    std::map<std::string, std::set<std::string>> used_by_;
    std::set<std::string> products_;
    std::set<std::string> facades_;
    std::map<std::string, std::string> headers_;
    // Keys that are folders end with a slash.
    std::map<std::string, std::set<std::string>> foreign_;
};

}  // namespace tensorpool::architecture
