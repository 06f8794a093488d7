# Frames of every pixel format are made by hand here, so the tests, unlike the facade, link FFmpeg themselves.
if(STROBE_MEDIA)
  target_link_libraries(strobe_media_test PRIVATE PkgConfig::FFMPEG)
endif()
