#include "architecture/layer_table.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

namespace tensorpool::architecture {
namespace {

LayerTable read(const char* text) {
    std::istringstream stream(text);
    return LayerTable::read(stream);
}

std::string error_of(const char* text) {
    try {
        read(text);
        return "";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

TEST(LayerTable, ReadsAllowedLayers) {
    const LayerTable table =
        read("# bottom first\nlayer base\n\nlayer pages base\nlayer pool base pages\n");
    EXPECT_TRUE(table.may_use("pool", "pages"));
    EXPECT_TRUE(table.may_use("pool", "pool"));
    EXPECT_FALSE(table.may_use("pages", "pool"));
    EXPECT_EQ(table.allowed("pool"), "base, pages");
    EXPECT_EQ(table.allowed("base"), "the standard library only");
}

TEST(LayerTable, ReadsLayerOfPublicHeader) {
    const LayerTable table = read("layer base\nheader detail/bits.hpp base\n");
    EXPECT_EQ(table.headers().at("detail/bits.hpp"), "base");
}

TEST(LayerTable, ReadsForeignIncludesOfHeader) {
    const LayerTable table = read("layer base\nheader a.hpp base one/ two.h\nheader b.hpp base\n");
    EXPECT_TRUE(table.may_include("a.hpp", "one/core.hpp"));
    EXPECT_TRUE(table.may_include("a.hpp", "two.h"));
    EXPECT_FALSE(table.may_include("a.hpp", "one"));
    EXPECT_FALSE(table.may_include("a.hpp", "two.hpp"));
    EXPECT_FALSE(table.may_include("b.hpp", "two.h"));
}

TEST(LayerTable, ReadsForeignIncludesOfFolder) {
    const LayerTable table = read("layer base\nfolder base/one one/ two.h\n");
    EXPECT_TRUE(table.folder_may_include("base/one", "one/core.hpp"));
    EXPECT_TRUE(table.folder_may_include("base/one", "two.h"));
    EXPECT_FALSE(table.folder_may_include("base/one", "two.hpp"));
    EXPECT_FALSE(table.folder_may_include("base", "two.h"));
}

TEST(LayerTable, RejectsUseOfLayerListedLater) {
    EXPECT_EQ(error_of("layer base\nlayer pages pool\nlayer pool base\n"),
              "lib/layers.txt:2: layer 'pages' uses 'pool', expected a layer of an earlier line");
}

TEST(LayerTable, RejectsProductsBelowTheCore) {
    EXPECT_EQ(error_of("layer base\nproduct device base\nlayer pages base device\n"),
              "lib/layers.txt:3: layer 'pages' of the core uses the product 'device'");
    const LayerTable table =
        read("layer base\nproduct device base\nproduct simulation base device\n");
    EXPECT_TRUE(table.may_use("simulation", "device"));
}

TEST(LayerTable, FacadesIncludeOnlyTablesOfProducts) {
    const LayerTable table = read("layer base\nproduct device base\nfacade snapshot base device\n");
    EXPECT_TRUE(table.may_include_file("snapshot", "device", "lib/device/device_table.hpp"));
    EXPECT_FALSE(table.may_include_file("snapshot", "device", "lib/device/runtime.hpp"));
    EXPECT_TRUE(table.may_include_file("snapshot", "base", "lib/base/text.hpp"));
    EXPECT_EQ(error_of("layer base\nfacade snapshot base\nlayer pages base snapshot\n"),
              "lib/layers.txt:3: layer 'pages' uses the facade 'snapshot'");
}

TEST(LayerTable, RejectsInvalidLines) {
    EXPECT_EQ(error_of("layr base\n"),
              "lib/layers.txt:1: 'layr', expected 'layer', 'product', 'facade', 'header' or "
              "'folder'");
    EXPECT_NE(error_of("layer\n"), "");
    EXPECT_NE(error_of("layer base\nlayer base\n"), "");
    EXPECT_NE(error_of("layer base\nheader bits.hpp\n"), "");
    EXPECT_NE(error_of("layer base\nheader bits.hpp pool\n"), "");
    EXPECT_NE(error_of("layer base\nheader a.hpp base\nheader a.hpp base\n"), "");
    EXPECT_NE(error_of("layer base\nfolder base/one\n"), "");
    EXPECT_NE(error_of("layer base\nfolder pool/one two.h\n"), "");
}

}  // namespace
}  // namespace tensorpool::architecture
