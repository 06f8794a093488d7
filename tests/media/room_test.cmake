# Frames of every pixel format are made by hand here, so the tests, unlike the facade, link FFmpeg themselves;
# the pool is tested by itself, and lies in the plugin otherwise.
if(STROBE_MEDIA)
  target_link_libraries(strobe_media_test PRIVATE PkgConfig::FFMPEG)
  target_sources(strobe_media_test PRIVATE ${PROJECT_SOURCE_DIR}/src/media/ffmpeg/picture_pool.cc)
endif()

strobe_pkg_config(GST_RTSP_SERVER gstreamer-rtsp-server-1.0)
if(STROBE_MEDIA AND GST_RTSP_SERVER_FOUND)
  add_executable(strobe_test_rtsp_server ${CMAKE_CURRENT_LIST_DIR}/rtsp_server.cc)
  target_link_libraries(strobe_test_rtsp_server PRIVATE PkgConfig::GST_RTSP_SERVER)
  add_dependencies(strobe_media_test strobe_test_rtsp_server)
else()
  message(STATUS "tests: RTSP is not tested against a server (libgstrtspserver-1.0-dev was not found)")
endif()
