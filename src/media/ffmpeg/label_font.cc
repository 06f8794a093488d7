#include "media/ffmpeg/label_font.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

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

  Mask render(std::string_view text, int x, int y) override {
    const int margin = ascent_ + 2;  // room for accents and overhangs
    Mask mask(x - margin, y - 2 * margin, width(text) + 2 * margin, 3 * margin + descent_);
    int pen = margin;
    while (!text.empty()) {
      const Glyph& drawn = glyph(take_code_point(text));
      for (int row = 0; row < drawn.height; ++row) {
        const int to_y = 2 * margin - drawn.top + row;
        if (to_y < 0 || to_y >= mask.height) continue;
        for (int column = 0; column < drawn.width; ++column) {
          const int to_x = pen + drawn.left + column;
          if (to_x < 0 || to_x >= mask.width) continue;
          const uint8_t covered = drawn.coverage[static_cast<size_t>(row * drawn.width + column)];
          mask.at(to_x, to_y) = std::max(mask.at(to_x, to_y), covered);
        }
      }
      pen += drawn.advance;
    }
    return mask;
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
  std::map<uint32_t, Glyph> glyphs_;
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
