use paygo_training::data::*;
use paygo_training::gradient::*;
use paygo_training::model::*;
use std::time::Instant;
fn mlp(i: usize, h: usize, o: usize) -> Network {
    let s = Shape::vector(i);
    Network::new(Sequence::new(
        s,
        vec![
            Box::new(Linear::new(i, h)),
            Box::new(Activation::new(Function::Relu, Shape::vector(h))),
            Box::new(Linear::new(h, o)),
        ],
    ))
}
fn cnn() -> Network {
    let s = Shape { height: 28, width: 28, channels: 1 };
    let c1 = Convolution::new(s, 16, 8, 2, 3).unwrap();
    let r1 = Activation::new(Function::Relu, c1.output());
    let p1 = Pool::new(Kind::Max, c1.output(), 2, 1).unwrap();
    let c2 = Convolution::new(p1.output(), 32, 4, 2, 0).unwrap();
    let r2 = Activation::new(Function::Relu, c2.output());
    let p2 = Pool::new(Kind::Max, c2.output(), 2, 1).unwrap();
    let n = p2.output().len();
    Network::new(Sequence::new(
        s,
        vec![
            Box::new(c1),
            Box::new(r1),
            Box::new(p1),
            Box::new(c2),
            Box::new(r2),
            Box::new(p2),
            Box::new(Linear::new(n, 32)),
            Box::new(Activation::new(Function::Relu, Shape::vector(32))),
            Box::new(Linear::new(32, 10)),
        ],
    ))
}
fn numbers(n: usize) -> Vec<f32> {
    let mut s = 1u32;
    (0..n)
        .map(|_| {
            s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            (s >> 8) as f32 / (1 << 24) as f32 - 0.5
        })
        .collect()
}
fn cpu() -> f64 {
    let t = std::fs::read_to_string("/proc/self/stat").unwrap();
    {
        let f: Vec<&str> = t.rsplit(')').next().unwrap().split_whitespace().collect();
        (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
    }
}
fn main() {
    for (name, model, n, b) in [
        ("mlp-784", mlp(784, 1000, 10), 6000, 600),
        ("mlp-60", mlp(60, 1000, 10), 6000, 600),
        ("cnn", cnn(), 5120, 512),
        (
            "regression",
            Network::new(Sequence::new(Shape::vector(105), vec![Box::new(Linear::new(105, 2))])),
            32561,
            32561,
        ),
    ] {
        if std::env::args().nth(1).is_some_and(|only| only != name) {
            continue;
        }
        let shape = model.input();
        let examples = Examples::new(
            shape,
            model.classes(),
            numbers(n * shape.len()),
            (0..n as u32).map(|i| i % model.classes() as u32).collect(),
        )
        .unwrap();
        let params: Vec<f32> = numbers(model.parameters()).iter().map(|x| x * 0.1).collect();
        let clip = Clip::whole(0.5).unwrap();
        let mut summer = Summer::new(&model, &examples, n, b);
        for private in [false, true, false, true] {
            let mut steps = 0;
            let t = Instant::now();
            let c = cpu();
            while t.elapsed().as_secs_f64() < 1.5 {
                let batch: Vec<u32> = (0..b as u32).map(|i| i * (n / b) as u32).collect();
                summer.add_up(&params, &batch, if private { Scaling::Clip(&clip) } else { Scaling::None }).unwrap();
                steps += 1;
            }
            println!(
                "{name} private={private} {:.0}/s {:.0}/cpu-s d={}",
                (steps * b) as f64 / t.elapsed().as_secs_f64(),
                (steps * b) as f64 / (cpu() - c),
                model.parameters()
            );
        }
    }
}
