// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import WindowPreview

/// Where a picture lies in a window.
@Suite struct PicturePlaceTests {
    private func place(
        _ width: Int, _ height: Int, aspect: Rational = Rational(0), _ orientation: Orientation = .up,
        turns: Int = 0, isMirrored: Bool = false, fit: WindowFit = .contain, in window: (Double, Double)
    ) -> PicturePlace {
        PicturePlace(
            VideoFormat(.i420, width: width, height: height, sampleAspectRatio: aspect), orientation: orientation,
            view: WindowView(fit: fit, quarterTurns: turns), isMirrored: isMirrored, window: window)
    }

    @Test func showsAllOfItInTheMiddle() {
        let wide = place(1280, 720, in: (640, 640))
        #expect(wide.source == .init(x: 0, y: 0, width: 1280, height: 720))
        #expect(wide.target == .init(x: 0, y: 140, width: 640, height: 360))
        #expect(place(720, 1280, in: (640, 640)).target == .init(x: 140, y: 0, width: 360, height: 640))
    }

    @Test func cutsTheMiddleOut() {
        let wide = place(1280, 720, fit: .fill, in: (640, 640))
        #expect(wide.source == .init(x: 280, y: 0, width: 720, height: 720))
        #expect(wide.target == .init(x: 0, y: 0, width: 640, height: 640))
    }

    /// SDL draws into the place before the turn, which is around its centre.
    @Test func turnsAroundTheCentre() {
        let turned = place(1280, 720, turns: 1, in: (640, 640))
        #expect(turned.quarterTurns == 1)
        // 360 wide and 640 high as shown.
        #expect(turned.target == .init(x: 0, y: 140, width: 640, height: 360))
        let filled = place(1280, 720, turns: 3, fit: .fill, in: (360, 640))
        #expect(filled.source == .init(x: 0, y: 0, width: 1280, height: 720))
        #expect(filled.target == .init(x: -140, y: 140, width: 640, height: 360))
    }

    @Test func takesSamplesThatAreNotSquare() {
        // 720x576 with 16:11 is shown as 1047x576.
        let anamorphic = place(720, 576, aspect: Rational(16, 11), in: (1047.2727, 576))
        #expect(abs(anamorphic.target.width - 1047.27) < 0.01 && abs(anamorphic.target.height - 576) < 0.01)
    }
}
