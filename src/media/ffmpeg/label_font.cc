#include "media/ffmpeg/label_font.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#ifdef STROBE_HAS_FREETYPE
#include <ft2build.h>
#include FT_FREETYPE_H
#endif

namespace strobe::media {
namespace {

void warn_once(const char* what) {
  static std::once_flag once;
  std::call_once(once, [&] { std::fprintf(stderr, "strobe: warning: labels are left out: %s\n", what); });
}

}  // namespace

#ifdef STROBE_HAS_FREETYPE
namespace {

constexpr const char* kFonts[] = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/dejavu/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/TTF/DejaVuSans-Bold.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Bold.ttf",
    "/usr/share/fonts/liberation-sans/LiberationSans-Bold.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf",
};

std::string find_font() {
  if (const char* chosen = std::getenv("STROBE_FONT")) return chosen;
  for (const char* path : kFonts) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return "";
}

// The next code point of UTF-8 text; a broken sequence is a replacement mark and costs one byte.
uint32_t take_code_point(std::string_view& text) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (length == 0 || length > text.size()) {
    text.remove_prefix(1);
    return 0xfffd;
  }
  uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) {
      text.remove_prefix(1);
      return 0xfffd;
    }
    code = code << 6 | (byte(i) & 0x3f);
  }
  text.remove_prefix(length);
  return code;
}

struct LibraryDeleter {
  void operator()(FT_Library library) const { FT_Done_FreeType(library); }
};
struct FaceDeleter {
  void operator()(FT_Face face) const { FT_Done_Face(face); }
};

struct Glyph {
  int left = 0, top = 0, width = 0, height = 0, advance = 0;
  std::vector<uint8_t> coverage;
};

// A glyph with the place of its upper left pixel.
struct Placed {
  const Glyph* glyph = nullptr;
  int x = 0, y = 0;
};

class FreeTypeFont : public LabelFont {
 public:
  static std::unique_ptr<FreeTypeFont> open(const std::string& path, int pixels) {
    auto font = std::unique_ptr<FreeTypeFont>(new FreeTypeFont());
    FT_Library library = nullptr;
    if (FT_Init_FreeType(&library) != 0) return nullptr;
    font->library_.reset(library);
    FT_Face face = nullptr;
    if (FT_New_Face(library, path.c_str(), 0, &face) != 0) return nullptr;
    font->face_.reset(face);
    if (FT_Set_Pixel_Sizes(face, 0, static_cast<FT_UInt>(pixels)) != 0) return nullptr;
    font->ascent_ = font->glyph('H').top;
    const Glyph& low = font->glyph('g');
    font->descent_ = std::max(0, low.height - low.top);
    return font;
  }

  int ascent() const override { return ascent_; }
  int descent() const override { return descent_; }

  int width(std::string_view text) override {
    int sum = 0;
    while (!text.empty()) sum += glyph(take_code_point(text)).advance;
    return sum;
  }

  void render(std::string_view text, int x, int y, const Canvas& canvas, Mask& mask) override {
    placed_.clear();
    Area extent{canvas.width(), canvas.height(), 0, 0};
    for (int pen = x; !text.empty();) {
      const Glyph& drawn = glyph(take_code_point(text));
      const Placed at{&drawn, pen + drawn.left, y - drawn.top};
      pen += drawn.advance;
      if (drawn.width == 0 || drawn.height == 0) continue;
      extent = {std::min(extent.left, at.x), std::min(extent.top, at.y), std::max(extent.right, at.x + drawn.width),
                std::max(extent.bottom, at.y + drawn.height)};
      placed_.push_back(at);
    }
    const Area area = canvas.fit(extent);
    mask.reset(area.empty() ? Area{} : area);
    mask.clear();
    for (const Placed& at : placed_) {
      const Glyph& drawn = *at.glyph;
      const int first = std::max(at.x, area.left);
      const int last = std::min(at.x + drawn.width, area.right);
      for (int row = std::max(at.y, area.top); row < std::min(at.y + drawn.height, area.bottom); ++row) {
        const uint8_t* const from = drawn.coverage.data() + (row - at.y) * drawn.width;
        uint8_t* const to = mask.row(row - area.top);
        for (int column = first; column < last; ++column) {
          uint8_t& weight = to[column - area.left];
          weight = std::max(weight, from[column - at.x]);
        }
      }
    }
  }

 private:
  FreeTypeFont() = default;

  const Glyph& glyph(uint32_t code) {
    const auto known = glyphs_.find(code);
    if (known != glyphs_.end()) return known->second;
    Glyph made;
    if (FT_Load_Char(face_.get(), code, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT) == 0) {
      const FT_GlyphSlot slot = face_->glyph;
      made.advance = static_cast<int>((slot->advance.x + 32) >> 6);
      if (slot->bitmap.pixel_mode == FT_PIXEL_MODE_GRAY) {
        made.left = slot->bitmap_left;
        made.top = slot->bitmap_top;
        made.width = static_cast<int>(slot->bitmap.width);
        made.height = static_cast<int>(slot->bitmap.rows);
        for (int row = 0; row < made.height; ++row) {
          const uint8_t* const line = slot->bitmap.buffer + row * slot->bitmap.pitch;
          made.coverage.insert(made.coverage.end(), line, line + made.width);
        }
      }
    }
    return glyphs_.emplace(code, std::move(made)).first->second;
  }

  std::unique_ptr<FT_LibraryRec_, LibraryDeleter> library_;
  std::unique_ptr<FT_FaceRec_, FaceDeleter> face_;
  std::unordered_map<uint32_t, Glyph> glyphs_;  // they stay where they are
  std::vector<Placed> placed_;
  int ascent_ = 0;
  int descent_ = 0;
};

}  // namespace

LabelFont* label_font(int pixels) {
  static const std::string path = find_font();
  if (path.empty()) {
    warn_once("no font was found (apt install fonts-dejavu-core, or name one in STROBE_FONT)");
    return nullptr;
  }
  thread_local std::map<int, std::unique_ptr<FreeTypeFont>> fonts;
  auto& font = fonts[pixels];
  if (!font) font = FreeTypeFont::open(path, pixels);
  if (!font) warn_once(("not a font: " + path).c_str());
  return font.get();
}

#else

LabelFont* label_font(int /*pixels*/) {
  warn_once("built without FreeType");
  return nullptr;
}

#endif

}  // namespace strobe::media
