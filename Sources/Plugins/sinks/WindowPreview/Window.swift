// SPDX-License-Identifier: Apache-2.0

import CSDL2
import Conversion
import FrameCore
import Shared

/// One window: what SDL has for it, and drawing. Belongs to the window thread.
final class Window {
    let slot: WindowSlot
    let id: UInt32
    private let window: OpaquePointer
    private let renderer: OpaquePointer
    private let texture: OpaquePointer
    /// Nil where SDL knows the picture's range and matrix.
    private let colors: YUVToYUV?
    private let converted: ScratchPicture?
    /// The orientation of the last picture, so that it can be drawn again when the window changes.
    private var last: (orientation: Orientation, isMirroredInPreviews: Bool)?
    private var isFullscreen = false
    /// Whether SDL draws without the graphics card.
    private let isSoftware: Bool
    /// SDL's milliseconds: when the next picture may be drawn.
    private var nextDrawing: Int64 = 0

    /// - Throws: ``FrameHostError``; nothing is then left open.
    init(_ slot: WindowSlot) throws {
        let format = slot.format
        let size = Self.firstSize(slot)
        let flags = SDL_WINDOW_RESIZABLE.rawValue | SDL_WINDOW_ALLOW_HIGHDPI.rawValue
        // SDL_WINDOWPOS_UNDEFINED, a macro of macros.
        let anywhere: Int32 = 0x1FFF_0000
        guard let window = SDL_CreateWindow(slot.title, anywhere, anywhere, size.width, size.height, flags) else {
            throw WindowFault.call("SDL_CreateWindow", Self.reason)
        }
        guard
            let renderer = SDL_CreateRenderer(window, -1, 0)
                ?? SDL_CreateRenderer(window, -1, SDL_RENDERER_SOFTWARE.rawValue)
        else {
            let fault = WindowFault.call("SDL_CreateRenderer", Self.reason)
            SDL_DestroyWindow(window)
            throw fault
        }
        func giveUp(_ fault: FrameHostError) -> FrameHostError {
            SDL_DestroyRenderer(renderer)
            SDL_DestroyWindow(window)
            return fault
        }
        var info = SDL_RendererInfo()
        let isKnown = SDL_GetRendererInfo(renderer, &info) == 0
        let isSoftware = isKnown && info.flags & SDL_RENDERER_SOFTWARE.rawValue != 0
        if isKnown, info.max_texture_width > 0, info.max_texture_height > 0,
            format.width > Int(info.max_texture_width) || format.height > Int(info.max_texture_height)
        {
            throw giveUp(WindowFault.tooLarge(format, Int(info.max_texture_width), Int(info.max_texture_height)))
        }
        // A texture takes this setting when it is made.
        let drawn = Self.drawn(format)
        SDL_SetYUVConversionMode(Self.conversion(drawn))
        guard
            let texture = SDL_CreateTexture(
                renderer, Self.pixels(format.pixelFormat), Int32(SDL_TEXTUREACCESS_STREAMING.rawValue),
                Int32(format.width),
                Int32(format.height))
        else { throw giveUp(WindowFault.texture("SDL_CreateTexture", Self.reason, isSoftware: isSoftware)) }
        SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_NONE)
        SDL_SetTextureScaleMode(texture, SDL_ScaleModeLinear)
        (self.slot, self.window, self.renderer, self.texture) = (slot, window, renderer, texture)
        self.isSoftware = isSoftware
        colors = YUVToYUV(from: format, to: drawn)
        converted = colors.map { _ in ScratchPicture(format.pixelFormat, width: format.width, height: format.height) }
        id = SDL_GetWindowID(window)
        clear()
        SDL_RenderPresent(renderer)
    }

    deinit {
        SDL_DestroyTexture(texture)
        SDL_DestroyRenderer(renderer)
        SDL_DestroyWindow(window)
    }

    /// SDL's reason for the last failed call.
    static var reason: String { String(cString: SDL_GetError()) }

    /// Draws the newest picture, if there is one and its time has come.
    ///
    /// - Returns: When to look again, in SDL's milliseconds; nil to wait for the next picture.
    func drawNewest(now: Int64) throws -> Int64? {
        if now < nextDrawing { return nextDrawing }
        guard let frame = slot.take() else { return nil }
        let view = slot.view
        if view.rate > 0 { nextDrawing = now + Int64(1000 / view.rate) }
        last = (frame.orientation, frame.isMirroredInPreviews)
        try upload(frame)
        // The buffer is returned to the chain before drawing, which may wait for the screen.
        _ = consume frame
        draw()
        slot.countDrawn()
        return nil
    }

    /// Draws the present picture again: the window was uncovered or has another size.
    func draw() {
        guard let last else {
            clear()
            SDL_RenderPresent(renderer)
            return
        }
        let view = slot.view
        if view.isFullscreen != isFullscreen {
            isFullscreen = view.isFullscreen
            SDL_SetWindowFullscreen(window, isFullscreen ? SDL_WINDOW_FULLSCREEN_DESKTOP.rawValue : 0)
        }
        var (width, height): (Int32, Int32) = (0, 0)
        guard SDL_GetRendererOutputSize(renderer, &width, &height) == 0, width > 0, height > 0 else { return }
        let isMirrored =
            switch view.mirror {
            case .auto: last.isMirroredInPreviews
            case .on: true
            case .off: false
            }
        let place = PicturePlace(
            slot.format, orientation: last.orientation, view: view, isMirrored: isMirrored,
            window: (Double(width), Double(height)))
        var source = SDL_Rect(
            x: Int32(place.source.x), y: Int32(place.source.y), w: max(Int32(place.source.width.rounded()), 1),
            h: max(Int32(place.source.height.rounded()), 1))
        var target = SDL_FRect(
            x: Float(place.target.x), y: Float(place.target.y), w: Float(place.target.width),
            h: Float(place.target.height))
        clear()
        SDL_RenderCopyExF(
            renderer, texture, &source, &target, Double(place.quarterTurns * 90), nil,
            place.isMirrored ? SDL_FLIP_HORIZONTAL : SDL_FLIP_NONE)
        SDL_RenderPresent(renderer)
    }

    private func clear() {
        SDL_SetRenderDrawColor(renderer, 64, 64, 64, 255)
        SDL_RenderClear(renderer)
    }

    private func upload(_ frame: borrowing Frame) throws {
        let status = frame.withPicture { picture in
            guard let colors, let converted else { return update(picture) }
            converted.picture.copy(picture)
            colors.convert(converted.picture)
            return update(converted.picture)
        }
        guard status == 0 else {
            throw WindowFault.texture("updating the texture", Self.reason, isSoftware: isSoftware)
        }
    }

    private func update(_ picture: Picture) -> Int32 {
        func plane(_ index: Int) -> (bytes: UnsafePointer<UInt8>, stride: Int32) {
            (UnsafePointer(picture[index].base.assumingMemoryBound(to: UInt8.self)), Int32(picture[index].strideBytes))
        }
        let first = plane(0)
        switch picture.pixelFormat {
        case .i420:
            let (u, v) = (plane(1), plane(2))
            return SDL_UpdateYUVTexture(
                texture, nil, first.bytes, first.stride, u.bytes, u.stride, v.bytes, v.stride)
        case .nv12:
            let pairs = plane(1)
            return SDL_UpdateNVTexture(texture, nil, first.bytes, first.stride, pairs.bytes, pairs.stride)
        default: return SDL_UpdateTexture(texture, nil, first.bytes, first.stride)
        }
    }

    // MARK: How

    /// The size of the upright picture with square samples, limited to nine tenths of the screen.
    private static func firstSize(_ slot: WindowSlot) -> (width: Int32, height: Int32) {
        if let size = slot.size { return (Int32(size.width), Int32(size.height)) }
        let lying = slot.format.orientation.then(Orientation(quarterTurns: slot.view.quarterTurns, mirrored: false))
        let shown = PictureGeometry(slot.format, lying: lying).shownSides
        var room = SDL_Rect()
        var scale = 1.0
        if SDL_GetDisplayUsableBounds(0, &room) == 0, room.w > 0, room.h > 0 {
            scale = min(1, Double(room.w) * 0.9 / shown.width, Double(room.h) * 0.9 / shown.height)
        }
        func side(_ length: Double) -> Int32 { Int32(min(max((length * scale).rounded(), 16), 16384)) }
        return (side(shown.width), side(shown.height))
    }

    private static func pixels(_ format: PixelFormat) -> UInt32 {
        let code =
            switch format {
            case .nv12: SDL_PIXELFORMAT_NV12
            case .yuyv: SDL_PIXELFORMAT_YUY2
            // SDL names these formats by the order in a little-endian word.
            case .bgra: SDL_PIXELFORMAT_ARGB8888
            default: SDL_PIXELFORMAT_IYUV
            }
        return UInt32(code.rawValue)
    }

    /// The nearest description that SDL knows: BT.601 and BT.709 in video range, and BT.601 in full range.
    static func drawn(_ format: VideoFormat) -> VideoFormat {
        var result = format
        switch (format.color.range, format.assumedMatrix) {
        case (_, 5), (_, 6), (.video, 1): break
        default: result.color = ColorDescription(range: .video, matrix: 1)
        }
        return result
    }

    private static func conversion(_ format: VideoFormat) -> SDL_YUV_CONVERSION_MODE {
        if format.color.range == .full { return SDL_YUV_CONVERSION_JPEG }
        return format.assumedMatrix == 1 ? SDL_YUV_CONVERSION_BT709 : SDL_YUV_CONVERSION_BT601
    }
}
