//! The text of a network: the templates of `networks/` write one step per line.
//!
//! A line consists of an operator, its module, and its parameters: words such as `bias`, and settings such as
//! `channels=64`. A step reads the output of the step before, or the values that `from` names; `keep` names the latest
//! value, `use` goes back to a named one. Weights, buffers and values share their names. Shapes are written as in
//! messages: `Bx3x224x224`.

use std::collections::HashMap;

use minijinja::{Environment, UndefinedBehavior};

use super::width::Width;
use crate::error::Result;
use crate::operator::{Along, Part};
use crate::{
    Addend, Copying, Dim, EPSILON, INT64, Initial, Mask, Network, Pointwise, Shape, Unary, ValueId, Window,
    WorkloadError,
};

/// The macros of all networks; later ones build on earlier ones.
const TEMPLATES: [&str; 2] =
    [include_str!("../../networks/pictures.jinja"), include_str!("../../networks/transformers.jinja")];

/// Builds the network that the macro call `text` writes, for samples of a shape and a number of classes, with hidden
/// layers of `width`.
pub(super) fn build(n: &mut Network, text: &str, input: &[u64], classes: u64, width: Width) -> Result<()> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_function("of", move |features: u64| width.of(features));
    environment.add_global("input", input.to_vec());
    environment.add_global("classes", classes);
    let source = format!("{}{{{{ {text} }}}}", TEMPLATES.concat());
    let steps = environment.render_str(&source, ());
    let steps = steps.map_err(|error| WorkloadError::Refused(format!("network {text}: {error:#}")))?;
    let mut builder = Builder { n, input, latest: 0, named: HashMap::new() };
    steps.lines().map(str::trim).filter(|line| !line.is_empty()).try_for_each(|line| {
        let wrong = || WorkloadError::Refused(format!("network {text}: `{line}` is not a step of a network"));
        builder.step(&Step::of(line)).ok_or_else(wrong)?
    })
}

/// A line.
struct Step<'t> {
    operator: &'t str,
    module: &'t str,
    words: Vec<&'t str>,
    settings: HashMap<&'t str, &'t str>,
}

impl<'t> Step<'t> {
    fn of(line: &'t str) -> Self {
        let (settings, words): (Vec<&str>, Vec<&str>) = line.split_whitespace().partition(|word| word.contains('='));
        let [operator, module] = [0, 1].map(|place| words.get(place).copied().unwrap_or_default());
        Self { operator, module, words, settings: settings.iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn says(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.settings.get(key).copied()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    fn real(&self, key: &str) -> Option<f32> {
        real(self.get(key)?)
    }

    fn list(&self, key: &str) -> Option<Vec<u64>> {
        self.get(key)?.split(',').map(|number| number.parse().ok()).collect()
    }

    /// Axes.
    fn places(&self, key: &str) -> Option<Vec<usize>> {
        self.list(key)?.into_iter().map(|place| usize::try_from(place).ok()).collect()
    }

    /// A number down and one across, or one for both; `default` if it is not given.
    fn pair(&self, key: &str, default: u64) -> Option<[u64; 2]> {
        let numbers = self.get(key).map_or_else(|| Some(vec![default]), |_| self.list(key))?;
        Some([*numbers.first()?, *numbers.last().filter(|_| numbers.len() < 3)?])
    }

    fn window(&self) -> Option<Window> {
        let [kernel, stride, padding] = [("kernel", 1), ("stride", 1), ("padding", 0)].map(|(k, d)| self.pair(k, d));
        Some(Window { kernel: kernel?, stride: stride?, padding: padding?, dilation: [1, 1] })
    }

    fn shape(&self) -> Option<Shape> {
        let dim = |text: &str| match text.strip_suffix('B') {
            Some("") => Some(Dim::batched(1)),
            Some(size) => size.parse().ok().map(Dim::batched),
            None => text.parse().ok().map(Dim::fixed),
        };
        self.get("shape")?.split('x').map(dim).collect::<Option<_>>().map(Shape)
    }

    /// Where a part starts in the whole, and along which axis it goes in which steps.
    fn part(&self) -> Option<Part> {
        let along = |text: &str| {
            let (axis, step) = text.split_once(':')?;
            Some(Along { axis: axis.parse().ok()?, step: step.parse().ok()? })
        };
        Some(Part {
            start: self.list("start")?,
            axes: self.get("along")?.split(',').map(along).collect::<Option<_>>()?,
        })
    }

    fn initial(&self) -> Option<Initial> {
        let (kind, number) = self.get("initial")?.split_once(':')?;
        Some(match kind {
            "constant" => Initial::Constant(real(number)?),
            "normal" => Initial::Normal { deviation: real(number)? },
            "layer" => Initial::of_layer(number.parse().ok()?),
            "counting" => Initial::Counting { first: number.parse().ok()? },
            "relative_positions" => Initial::RelativePositions { side: number.parse().ok()? },
            _ => return None,
        })
    }

    /// The element-wise function of this name, if it is one.
    fn function(&self) -> Option<Unary> {
        Some(match self.operator {
            "relu" => Unary::Relu,
            "gelu" => Unary::Gelu,
            "tanh" => Unary::Tanh,
            "silu" => Unary::Silu,
            "cos" | "sin" => Unary::Other(Pointwise::Sin),
            "rsqrt" => Unary::Other(Pointwise::InverseRoot),
            "scale" => Unary::Scale(self.real("by")?),
            "divide" => Unary::DivideByElement(self.real("by")?),
            "pow" => Unary::Power(self.real("to")?),
            "drop_path" => Unary::DropPath(self.real("last")? * self.real("before")? / self.real("blocks")?),
            "add_constant" => Unary::AddConstant(self.real("value").map_or(Addend::Tensor, Addend::Value)),
            _ => return None,
        })
    }
}

/// Networks here compute in fp32.
#[expect(clippy::cast_possible_truncation, reason = "networks here compute in fp32")]
fn real(text: &str) -> Option<f32> {
    text.parse::<f64>().ok().map(|number| number as f32)
}

/// A network in the making.
struct Builder<'t, 'n> {
    n: &'n mut Network,
    input: &'t [u64],
    /// The output of the step before.
    latest: ValueId,
    /// Values, weights and buffers by name.
    named: HashMap<&'t str, u32>,
}

impl<'t> Builder<'t, '_> {
    /// Takes a step; `None` if its form is not known.
    fn step(&mut self, step: &Step<'t>) -> Option<Result<()>> {
        let made = match step.operator {
            "keep" => Ok(*self.named.entry(step.module).insert_entry(self.latest).get()),
            "use" => Ok(*self.named.get(step.module)?),
            "weight" | "buffer" => {
                let (name, trains) = (step.module, !step.says("frozen"));
                let made = match step.operator {
                    "weight" => self.n.weight(name, &step.list("dims")?, step.initial()?, trains),
                    _ => self.n.buffer(name, step.number("bytes")?),
                };
                self.named.insert(name, made);
                return Some(Ok(()));
            }
            _ => self.operator(step)?,
        };
        Some(made.map(|value| self.latest = value))
    }

    /// The value that an operator makes.
    fn operator(&mut self, step: &Step<'t>) -> Option<Result<ValueId>> {
        let (m, x, n) = (step.module, self.latest, &mut *self.n);
        let named = |name: &str| self.named.get(name).copied();
        let setting = |key: &str| step.get(key).and_then(named);
        let from: Vec<ValueId> = step.get("from").unwrap_or_default().split(',').filter_map(named).collect();
        let pair = || <[ValueId; 2]>::try_from(from.as_slice()).ok();
        // They may have been made for another module.
        let [weight, bias] = ["weight", "bias"].map(|part| match step.get("weights") {
            Some(layer) => named(&format!("{layer}.{part}")),
            None => setting(part),
        });
        if let Some(function) = step.function() {
            return Some(Ok(n.unary(m, x, function)));
        }
        Some(match step.operator {
            "input" => Ok(match self.input {
                &[tokens] => n.token_input(tokens),
                image => n.input(image),
            }),
            "target" => Ok(n.target(step.number("labels")?)),
            "look" => Ok(n.frozen(weight?, step.shape()?)),
            "ids" => {
                let storage = n.stored_ids(m, step.number("stored")?, step.initial()?);
                Ok(n.look_at(storage, step.shape()?))
            }
            "convolution" => {
                let (channels, groups) = (step.number("channels")?, step.number("groups")?);
                n.convolution(m, x, channels, step.window()?, groups, step.says("bias"))
            }
            "linear" => match (step.number("features")?, weight) {
                (features, None) => n.linear(m, x, features, !step.says("without_bias")),
                (features, Some(weight)) => n.linear_with(m, x, features, weight, bias),
            },
            "matmul" if step.says("in_place") => pair().map(|[a, b]| n.matmul_in_place(m, a, b))?,
            "matmul" => pair().map(|[a, b]| n.matmul(m, a, b))?,
            "batch_norm" => n.batch_norm_of(m, x, step.real("epsilon").unwrap_or(EPSILON)),
            "layer_norm" => n.layer_norm_with(m, x, [weight?, bias?], step.real("epsilon")?),
            "relu_in_place" => Ok(n.in_place(m, x, Unary::Relu)),
            "relu6_in_place" => Ok(n.in_place(m, x, Unary::Relu6)),
            "causal_mask" => Ok(n.masked(m, x, setting("buffer")?, Mask::Causal)),
            "add" => pair().map(|[a, b]| n.add(m, a, b))?,
            "mul" => pair().map(|[a, b]| n.mul(m, a, b))?,
            "concat" => n.concat(m, &from, *step.places("axis")?.first()?),
            "max_pool" => n.max_pool(m, x, step.window()?, step.says("round_up")),
            "average_pool" => n.average_pool(m, x, step.window()?),
            "adaptive_average_pool" => n.adaptive_average_pool(m, x, step.number("side")?),
            "mean" => Ok(n.mean(m, x, step.places("axes")?, step.shape()?)),
            "dropout" => Ok(n.dropout(m, x, step.real("probability")?)),
            "softmax" => Ok(n.softmax(m, x)),
            "embedding" => Ok(n.embedding(m, x, step.number("width")?, setting("table")?)),
            "index_table" => Ok(n.index_table(m, x, setting("table")?, step.shape()?)),
            "flatten" => n.flatten(m, x),
            "reshape" => n.reshape(m, x, step.shape()?),
            "permute" => n.permute(m, x, &step.places("order")?),
            "slice" => Ok(n.slice(m, x, step.part()?, step.shape()?, false)),
            "copied_part" => Ok(n.computed(m, x, Copying::Part(step.part()?), step.shape()?, INT64)),
            "contiguous" => Ok(n.contiguous(m, x)),
            "copy" => Ok(n.copy(m, x)),
            "roll" => Ok(n.roll(m, x, &step.list("by")?)),
            "pad" => Ok(n.pad(m, x, step.shape()?)),
            "cross_entropy" => pair().map(|[scores, target]| n.cross_entropy(m, scores, target))?,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::MODELS;

    fn refusal(text: &str) -> String {
        build(&mut Network::new("n"), text, &[1, 8, 8], 10, Width::FULL).unwrap_err().to_string()
    }

    #[test]
    fn the_file_of_models_is_read_and_no_template_names_what_there_is_not() {
        assert_eq!(MODELS.len(), 44);
        for model in MODELS.iter() {
            assert!(crate::models::build(model.id, None).is_ok(), "{}", model.id);
        }
    }

    /// Qwen2 and Llama of two layers, as PyTorch counts them: torch 2.15.0 (CPU, fp32, training mode), transformers 5.24.0
    /// (`attn_implementation="eager"`) and peft 0.21.2 (LoRA of rank 8 and alpha 16 on `q_proj` and `v_proj`, no dropout) from
    /// a configuration, `torch.utils.flop_counter` and `torch.autograd.graph.saved_tensors_hooks` (distinct storages that are
    /// no parameter's), at a batch of 3 samples of 16 tokens with labels.
    #[test]
    fn small_language_models_are_counted_as_pytorch_counts_them() {
        let small = "vocabulary=320, width=64, layers=2, heads=8, shared=2, inner=160";
        for (more, parameters, flops, saved) in [
            (", tied=true, bias=true, epsilon=0.000001", 106_240, 10_543_104, 438_404),
            ("", 126_528, 10_543_104, 438_404),
        ] {
            let mut network = Network::new("small");
            build(&mut network, &format!("llama({small}{more})"), &[16], 0, Width::FULL).unwrap();
            let counts = crate::counts::count(&network, 3);
            let here = [counts.parameters, counts.trainable_parameters, counts.forward_flops, counts.saved_bytes];
            assert_eq!(here, [parameters, 3328, flops, saved], "{more}");
        }
    }

    #[test]
    fn a_line_that_is_no_step_and_a_macro_that_fails_are_named() {
        assert!(refusal("'input\nconvolve c channels=8'").ends_with("channels=8` is not a step of a network"));
        assert!(refusal("'input\nadaptive_average_pool p'").contains("`adaptive_average_pool p` is not a step"));
        assert!(refusal("'use nothing'").contains("`use nothing` is not a step"));
        assert!(refusal("resnet18()").contains("resnet18"), "{}", refusal("resnet18()"));
    }
}
