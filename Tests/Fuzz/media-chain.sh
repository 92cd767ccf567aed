# SPDX-License-Identifier: Apache-2.0
# compile_media_chain OUT FLAG…: the fuzz target of the stages between a file and its recording. Each plugin, and what file-source shares with others, is a module of its own, with the fuzzer's counters; Core
# and the network stack are the libraries that `swift build -c release` leaves behind, without them.
compile_media_chain() {
  local out=$1 built=.build/release work=.build/fuzz/modules shims=Sources/Plugins/support/Shims sink=Sources/Plugins/sinks/RTSPSink module sources source flags
  shift
  [[ -e $built/libFrameCore.so && -e $built/libFrameNetwork.so ]] || swift build -c release
  mkdir -p "$work"
  flags=("$level" -swift-version 6 -use-ld=lld -parse-as-library -enable-testing -package-name framehost -I "$work" -I "$built/Modules" -I Sources/Core/StageLink/include "$@")
  flags+=(-I $shims/CAVFormat/include -I $shims/CX264/include -I $sink/Shims/CDatagram/include -I Sources/Plugins/support/ServerAccess/Shims/CNettle)
  flags+=(-I $shims/CPNG/include -I $shims/CTurboJPEG -I $shims/CFreeType)
  for module in $(pkg-config --cflags freetype2); do flags+=(-Xcc "$module"); done
  for module in "$built"/*.build/module.modulemap; do flags+=(-Xcc "-fmodule-map-file=$module"); done
  for module in .build/checkouts/*/Sources/*/include; do flags+=(-Xcc "-I$module"); done
  local objects=()
  for module in CodedVideo Shared PictureStamp Lettering Stills LiveStates LiveInput Recordings Reports FileSource X264Encoder Rate Recorder ServerAccess RTSPSink; do
    # Each plugin's entry has the same symbol.
    mapfile -t sources < <(find Sources/Plugins/*/"$module" -name .build -prune -o -name '*.swift' ! -name "${module}Plugin.swift" ! -name Package.swift -print | sort)
    swiftc "${flags[@]}" -wmo -module-name "$module" -emit-module -emit-module-path "$work/$module.swiftmodule" -emit-object \
      -o "$work/$module.o" "${sources[@]}"
    objects+=("$work/$module.o")
  done
  for source in $shims/CAVFormat/{CAVFormat,CAVFilter}.c $shims/CX264/CX264.c $shims/CPNG/CPNG.c $sink/Shims/CDatagram/CDatagram.c; do
    module=$(basename "$source" .c)
    clang -c -O1 -g -fsanitize=address,fuzzer-no-link -I "${source%/*}/include" "$source" -o "$work/$module.o"
    objects+=("$work/$module.o")
  done
  swiftc "${flags[@]}" Tests/Fuzz/MediaChainFuzz.swift "${objects[@]}" -module-name FuzzTarget -o "$out" -L "$built" -lFrameCore \
    -lFrameNetwork -lx264 -lavformat -lavcodec -lavutil -lswscale -lswresample -lnettle -lfreetype -lpng16 -lturbojpeg -Xlinker "-rpath=$PWD/$built"
}
