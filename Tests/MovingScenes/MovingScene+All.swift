// SPDX-License-Identifier: Apache-2.0

extension MovingScene {
    /// The scenes by which `motion-detect` is judged beside other programs (Tests/Soak/motion.py).
    public static let all: [MovingScene] = [
        MovingScene(
            "walker", seconds: 56,
            [
                .walker(from: 6, size: 0.45, ground: 0.9, speed: 0.3, coat: 60), .noise(sigma: 2),
                .walker(from: 22, size: 0.3, ground: 0.78, speed: -0.25, coat: 190),
                .walker(from: 40, size: 0.6, ground: 0.98, speed: 0.4, coat: 120),
            ]),
        MovingScene(
            "small walker", seconds: 60,
            [
                .walker(from: 6, size: 0.16, ground: 0.72, speed: 0.12, coat: 40), .noise(sigma: 2),
                .walker(from: 30, size: 0.18, ground: 0.74, speed: -0.15, coat: 200),
                .walker(from: 46, size: 0.2, ground: 0.76, speed: 0.2, coat: 30),
            ]),
        MovingScene(
            "cars", seconds: 50,
            [
                .car(from: 5, size: 0.2, ground: 0.85, speed: 0.8, paint: 200), .noise(sigma: 2),
                .car(from: 14, size: 0.24, ground: 0.9, speed: 1.2, paint: 60),
                .car(from: 24, size: 0.14, ground: 0.74, speed: 0.5, paint: 130),
                .car(from: 36, size: 0.4, ground: 0.98, speed: 1.6, paint: 170),
                .car(from: 44, size: 0.2, ground: 0.85, speed: 0.6, paint: 90),
            ]),
        MovingScene("rain", seconds: 60, [.rain(from: 10, until: 50, drops: 260), .noise(sigma: 2)]),
        MovingScene(
            "walker in rain", seconds: 60,
            [
                .walker(from: 20, size: 0.4, ground: 0.88, speed: 0.25, coat: 50),
                .walker(from: 42, size: 0.3, ground: 0.8, speed: -0.3, coat: 200),
                .rain(from: 5, until: 60, drops: 260), .noise(sigma: 2),
            ]),
        MovingScene(
            "light switch", seconds: 60, daylight: 0.35,
            [
                .walker(from: 30, size: 0.4, ground: 0.88, speed: 0.3, coat: 200),
                .lamp(at: 8, x: 0.5, y: 0.1, reach: 0.6, factor: 1.6, flicker: false),
                .exposure(at: 20, factor: 2, fade: 0), .exposure(at: 42, factor: 0.5, fade: 0),
                .lamp(at: 50, x: 1.1, y: 0.6, reach: 0.4, factor: 1.2, flicker: false), .noise(sigma: 3),
            ]),
        MovingScene(
            "exposure", seconds: 60,
            [
                .walker(from: 24, size: 0.4, ground: 0.88, speed: 0.3, coat: 50),
                .exposure(at: 6, factor: 0.6, fade: 0.7), .exposure(at: 14, factor: 1.7, fade: 0.4),
                .exposure(at: 34, factor: 0.55, fade: 1), .exposure(at: 44, factor: 1.5, fade: 0.3),
                .exposure(at: 52, factor: 0.7, fade: 2), .noise(sigma: 2),
            ]),
        MovingScene(
            "trees", seconds: 90,
            [
                .tree(left: 0.2, right: 0.8, bottom: 0.55, sway: 0.012, gusts: 15),
                .tree(left: 1, right: 1.3, bottom: 0.7, sway: 0.02, gusts: 40), .noise(sigma: 2),
            ]),
        MovingScene(
            "walker by trees", seconds: 70,
            [
                .walker(from: 25, size: 0.35, ground: 0.9, speed: 0.25, coat: 40),
                .walker(from: 45, size: 0.3, ground: 0.82, speed: -0.3, coat: 200),
                .tree(left: 0.2, right: 0.8, bottom: 0.55, sway: 0.012, gusts: 10), .noise(sigma: 2),
            ]),
        MovingScene("low light", seconds: 60, daylight: 0.2, [.noise(sigma: 9)]),
        MovingScene(
            "walker in low light", seconds: 60, daylight: 0.3,
            [
                .walker(from: 12, size: 0.4, ground: 0.88, speed: 0.25, coat: 90),
                .walker(from: 36, size: 0.3, ground: 0.8, speed: -0.25, coat: 10), .noise(sigma: 8),
            ]),
        MovingScene(
            "flickering lamp", seconds: 60, daylight: 0.5,
            [
                .walker(from: 40, size: 0.4, ground: 0.88, speed: 0.25, coat: 190),
                .lamp(at: 12, x: 0.9, y: 0.25, reach: 0.3, factor: 0.9, flicker: true), .noise(sigma: 2),
            ]),
        MovingScene(
            "shadows", seconds: 80,
            [
                .shadow(from: 5, speed: 0.02, edge: 0.1, depth: 0.35),
                .shadow(from: 40, speed: 0.15, edge: 0.3, depth: 0.3),
                .walker(from: 62, size: 0.35, ground: 0.85, speed: 0.25, coat: 40), .noise(sigma: 2),
            ]),
        MovingScene(
            "a stop", seconds: 70,
            [
                .walker(from: 8, size: 0.45, ground: 0.9, speed: 0.25, coat: 60, pause: 11...40), .noise(sigma: 2),
            ]),
        MovingScene(
            "from the first", seconds: 40,
            [
                .walker(from: -2, size: 0.4, ground: 0.88, speed: 0.3, coat: 60), .noise(sigma: 2),
                .walker(from: 20, size: 0.4, ground: 0.88, speed: -0.3, coat: 200),
            ]),
        MovingScene(
            "reconnection", seconds: 60,
            [
                .walker(from: 35, size: 0.4, ground: 0.88, speed: 0.3, coat: 60),
                .exposure(at: 18, factor: 1.3, fade: 0),
                .noise(sigma: 2), .slate(from: 12, until: 18), .slate(from: 48, until: 51),
            ]),
        MovingScene(
            "shaking camera", seconds: 60,
            [
                .walker(from: 25, size: 0.4, ground: 0.88, speed: 0.25, coat: 40), .shake(amount: 0.004),
                .noise(sigma: 2),
            ]),
    ]
}
