//! The built-in models, each a function that builds its network operator by operator.
//!
//! Here are their names and the shapes that they take; the modules below hold the networks, a family each.

mod bert;
mod blocks;
mod gpt2;
mod inception;
mod mobile;
mod residual;
mod small;
mod swin;
mod transformer;
mod vgg;

use haversack_devices::ensure;
use haversack_devices::text::{nearest, question_or};

use self::Build::{Alone, MobileNet, OnlyFull, ResNet, Vgg, VggForCifar};
use self::bert::{ALBERT_BASE, BERT_BASE, BERT_SMALL, Encoder, ROBERTA_BASE_LORA, TRANSFORMER1, TRANSFORMER2_LORA};
use self::inception::inception_v3;
use self::mobile::{MOBILENET_V2, SLIM, shufflenet_v2, squeezenet1_1};
use self::residual::{
    RESNET8_CIFAR, RESNET18, RESNET18_CIFAR, RESNET20_CIFAR, RESNET34, RESNET34_CIFAR, RESNET50, RESNET50_V1,
    densenet121,
};
use self::small::{bag_of_tokens, lenet5, logistic, mlp};
use self::swin::swin_t;
use self::vgg::{VGG11, VGG16, VGG19, vgg_small};
use crate::{Network, WorkloadError};

pub use self::blocks::Width;

/// The largest side of an image, so that no count overflows.
const LARGEST_SIDE: u64 = 8192;
/// The most channels of an image.
const MOST_CHANNELS: u64 = 1024;

/// What a builder of a network yields.
type Built<T = ()> = Result<T, WorkloadError>;

/// What one sample of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// An image.
    Image {
        /// The model's own channels, height and width.
        own: [u64; 3],
    },
    /// A sequence of token ids.
    Tokens {
        /// The model's own length.
        own: [u64; 1],
        /// The fewest tokens that it takes.
        least: u64,
        /// The most tokens: the positions that it has.
        most: u64,
    },
}

impl Sample {
    /// The model's own shape.
    pub const fn own(&self) -> &[u64] {
        match self {
            Self::Image { own } => own,
            Self::Tokens { own, .. } => own,
        }
    }

    fn accepts(&self, shape: &[u64]) -> bool {
        match (self, shape) {
            (Self::Image { .. }, &[channels, height, width]) => {
                let side = 1..=LARGEST_SIDE;
                (1..=MOST_CHANNELS).contains(&channels) && side.contains(&height) && side.contains(&width)
            }
            (Self::Tokens { least, most, .. }, &[tokens]) => (*least..=*most).contains(&tokens),
            _ => false,
        }
    }

    /// What it takes, for people.
    fn takes(&self) -> String {
        let own = dimensions(self.own());
        match self {
            Self::Image { .. } => {
                format!("channels x height x width, such as its own {own}, with sides up to {LARGEST_SIDE}")
            }
            Self::Tokens { least, most, .. } => format!("a number of tokens from {least} to {most}; its own is {own}"),
        }
    }
}

/// A built-in model.
pub struct Model {
    /// Its id on the command line.
    pub id: &'static str,
    /// One line for people, with the source of its definition.
    pub about: &'static str,
    /// What it is trained on.
    pub sample: Sample,
    /// The classes that it tells apart unless other ones are asked for; `None` if it predicts tokens.
    pub classes: Option<u64>,
    build: Build,
}

impl Model {
    /// Its network, called `name`, with hidden layers of `width`.
    fn build(
        &self,
        name: &str,
        width: Width,
        input: Option<&[u64]>,
        classes: Option<u64>,
    ) -> Result<Network, WorkloadError> {
        let shape = input.unwrap_or(self.sample.own());
        let refuse = |reason: &str| WorkloadError::Input {
            model: name.to_owned(),
            message: format!("an input of {} {reason}; it takes {}", dimensions(shape), self.sample.takes()),
        };
        ensure!(self.sample.accepts(shape), refuse("does not fit"));
        let classes = self.classes_of(classes)?;
        let mut network = Network::new(name);
        match self.build.build(&mut network, shape, classes, width) {
            Ok(()) => Ok(network),
            // With the right rank, only a window that is larger than what is left can fail.
            Err(WorkloadError::Shape { module, .. }) => Err(refuse(&format!("is too small for {module}"))),
            Err(other) => Err(other),
        }
    }

    /// Its number of classes, `asked` if it can have as many; zero where there are none.
    fn classes_of(&self, asked: Option<u64>) -> Result<u64, WorkloadError> {
        let refuse = |message| Err(WorkloadError::Input { model: self.id.to_owned(), message });
        match (asked, self.classes) {
            (None, own) => Ok(own.unwrap_or(0)),
            (Some(classes), None) => refuse(format!("{classes} classes do not fit; it predicts tokens and has none")),
            (Some(classes), Some(own)) if !(1..=MOST_CLASSES).contains(&classes) => {
                refuse(format!("{classes} classes do not fit; it takes from 1 to {MOST_CLASSES}; its own are {own}"))
            }
            (Some(classes), _) => Ok(classes),
        }
    }
}

/// The family of a network, and what tells it from its sisters.
enum Build {
    ResNet(&'static residual::ResNet),
    MobileNet(&'static mobile::MobileNet),
    Vgg(vgg::Stages),
    /// With one dense layer, and with batch normalisation or without.
    VggForCifar(vgg::Stages, bool),
    Classifier(&'static Encoder),
    MaskedLanguageModel(&'static Encoder),
    /// By itself.
    Alone(fn(&mut Network, &[u64], u64, Width) -> Built),
    /// By itself, without a narrower form.
    OnlyFull(fn(&mut Network, &[u64], u64) -> Built),
}

impl Build {
    /// Builds a network for samples of a shape and a number of classes, with hidden layers of a width.
    fn build(&self, n: &mut Network, input: &[u64], classes: u64, width: Width) -> Built {
        match *self {
            Self::ResNet(family) => residual::build(n, input, classes, width, family),
            Self::MobileNet(family) => mobile::build(n, input, classes, width, family),
            Self::Vgg(stages) => vgg::imagenet(n, input, classes, width, stages),
            Self::VggForCifar(stages, norm) => vgg::cifar(n, input, classes, width, stages, norm),
            Self::Classifier(encoder) => bert::classifier(n, input, classes, &encoder.narrowed(width)),
            Self::MaskedLanguageModel(encoder) => bert::masked_language_model(n, input, &encoder.narrowed(width)),
            Self::Alone(build) => build(n, input, classes, width),
            Self::OnlyFull(build) if width == Width::FULL => build(n, input, classes),
            Self::OnlyFull(_) => {
                let message = "it has no narrower form".to_owned();
                Err(WorkloadError::Input { model: n.name.clone(), message })
            }
        }
    }
}

const fn image(id: &'static str, about: &'static str, own: [u64; 3], classes: u64, build: Build) -> Model {
    Model { id, about, sample: Sample::Image { own }, classes: Some(classes), build }
}

const fn imagenet(id: &'static str, about: &'static str, build: Build) -> Model {
    image(id, about, [3, 224, 224], 1000, build)
}

const fn cifar(id: &'static str, about: &'static str, build: Build) -> Model {
    image(id, about, [3, 32, 32], 10, build)
}

/// A text model of two labels.
const fn text(id: &'static str, about: &'static str, tokens: u64, encoder: &'static Encoder) -> Model {
    let sample = Sample::Tokens { own: [tokens], least: 1, most: encoder.positions };
    Model { id, about, sample, classes: Some(2), build: Build::Classifier(encoder) }
}

/// A text model that fills in every token.
const fn masked(id: &'static str, about: &'static str, tokens: u64, encoder: &'static Encoder) -> Model {
    Model { classes: None, build: Build::MaskedLanguageModel(encoder), ..text(id, about, tokens, encoder) }
}

/// The most classes that can be asked for.
const MOST_CLASSES: u64 = 1 << 20;

/// All built-in models, in the order in which they are listed.
pub const MODELS: &[Model] = &[
    image(
        "lenet5",
        "LeNet-5 with ReLU and max-pooling, 62 classes (LeCun et al., 1998)",
        [1, 28, 28],
        62,
        Alone(lenet5),
    ),
    imagenet("resnet18", "ResNet-18 as torchvision builds it (He et al., CVPR 2016)", ResNet(&RESNET18)),
    cifar("resnet18-cifar", "ResNet-18 with a 3x3 stem, 10 classes (He et al., CVPR 2016)", ResNet(&RESNET18_CIFAR)),
    imagenet("resnet34", "ResNet-34 as torchvision builds it (He et al., CVPR 2016)", ResNet(&RESNET34)),
    cifar("resnet34-cifar", "ResNet-34 with a 3x3 stem, 10 classes (He et al., CVPR 2016)", ResNet(&RESNET34_CIFAR)),
    imagenet("resnet50", "ResNet-50 as torchvision builds it (He et al., CVPR 2016)", ResNet(&RESNET50)),
    imagenet(
        "resnet50-v1",
        "ResNet-50 that halves maps in the first convolution of a block, as published (2016)",
        ResNet(&RESNET50_V1),
    ),
    imagenet("densenet121", "DenseNet-121, not memory-efficient (Huang et al., CVPR 2017)", OnlyFull(densenet121)),
    imagenet(
        "mobilenetv2",
        "MobileNetV2 as torchvision builds it (Sandler et al., CVPR 2018)",
        MobileNet(&MOBILENET_V2),
    ),
    imagenet("shufflenetv2", "ShuffleNet V2 x1.0 (Ma et al., ECCV 2018)", Alone(shufflenet_v2)),
    imagenet("squeezenet1-1", "SqueezeNet 1.1 (Iandola et al., 2016)", Alone(squeezenet1_1)),
    imagenet("vgg11", "VGG-11 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", Vgg(VGG11)),
    imagenet("vgg16", "VGG-16 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", Vgg(VGG16)),
    imagenet("vgg19", "VGG-19 as torchvision builds it (Simonyan and Zisserman, ICLR 2015)", Vgg(VGG19)),
    cifar(
        "vgg11-cifar",
        "VGG-11, one dense layer, 10 classes (Simonyan and Zisserman, ICLR 2015)",
        VggForCifar(VGG11, false),
    ),
    cifar(
        "vgg11-cifar-bn",
        "vgg11-cifar with batch normalisation (Ioffe and Szegedy, ICML 2015)",
        VggForCifar(VGG11, true),
    ),
    cifar(
        "vgg16-cifar",
        "VGG-16, one dense layer, 10 classes (Simonyan and Zisserman, ICLR 2015)",
        VggForCifar(VGG16, false),
    ),
    cifar(
        "vgg16-cifar-bn",
        "vgg16-cifar with batch normalisation (Ioffe and Szegedy, ICML 2015)",
        VggForCifar(VGG16, true),
    ),
    image(
        "inceptionv3",
        "Inception v3 without auxiliary classifier (Szegedy et al., CVPR 2016)",
        [3, 299, 299],
        1000,
        OnlyFull(inception_v3),
    ),
    imagenet("swin-t", "Swin-T, stochastic depth 0.2 (Liu et al., ICCV 2021)", OnlyFull(swin_t)),
    text("bert-small", "BERT-small, 512 tokens, 2 labels (Devlin et al., 2019; Turc et al., 2019)", 512, &BERT_SMALL),
    text("bert-small-s64", "bert-small with 64 tokens (Turc et al., 2019)", 64, &BERT_SMALL),
    masked("bert-small-mlm", "bert-small that fills in every token (Devlin et al., NAACL 2019)", 512, &BERT_SMALL),
    masked("bert-small-s64-mlm", "bert-small-mlm with 64 tokens (Devlin et al., NAACL 2019)", 64, &BERT_SMALL),
    text("bert-base", "BERT-base, 128 tokens, 2 labels (Devlin et al., NAACL 2019)", 128, &BERT_BASE),
    text("bert-base-s512", "bert-base with 512 tokens (Devlin et al., NAACL 2019)", 512, &BERT_BASE),
    masked("bert-base-mlm", "bert-base that fills in every token (Devlin et al., NAACL 2019)", 128, &BERT_BASE),
    masked("bert-base-s512-mlm", "bert-base-mlm with 512 tokens (Devlin et al., NAACL 2019)", 512, &BERT_BASE),
    text(
        "albert-base",
        "ALBERT-base v2, 128 tokens, 2 labels, one shared layer (Lan et al., ICLR 2020)",
        128,
        &ALBERT_BASE,
    ),
    masked("albert-base-mlm", "albert-base that fills in every token (Lan et al., ICLR 2020)", 128, &ALBERT_BASE),
    text(
        "roberta-base-lora",
        "RoBERTa-base, 128 tokens, LoRA of rank 8 (Liu et al., 2019; Hu et al., ICLR 2022)",
        128,
        &ROBERTA_BASE_LORA,
    ),
    text("roberta-base-lora-s512", "roberta-base-lora with 512 tokens (Hu et al., ICLR 2022)", 512, &ROBERTA_BASE_LORA),
    Model {
        id: "gpt2-medium-lora",
        about: "GPT-2 medium, 512 tokens, LoRA of rank 4 (Radford et al., 2019; Hu et al., ICLR 2022)",
        sample: Sample::Tokens { own: [512], least: 2, most: gpt2::POSITIONS },
        classes: None,
        build: OnlyFull(|n, s, _| gpt2::gpt2_medium_lora(n, s)),
    },
    cifar(
        "resnet8-cifar",
        "ResNet of 8 layers for CIFAR, projections (He et al., CVPR 2016, 4.2)",
        ResNet(&RESNET8_CIFAR),
    ),
    cifar(
        "resnet20-cifar",
        "ResNet of 20 layers for CIFAR, projections (He et al., CVPR 2016, 4.2)",
        ResNet(&RESNET20_CIFAR),
    ),
    cifar(
        "mobilenetv2-slim",
        "MobileNetV2 at a quarter of the width for CIFAR (Sandler et al., 2018)",
        MobileNet(&SLIM),
    ),
    cifar(
        "vgg-small",
        "Six normalised convolutions, 32 to 128 channels (after Simonyan and Zisserman)",
        Alone(vgg_small),
    ),
    text(
        "transformer2-lora",
        "Two layers of 64 features, 32 tokens, LoRA of rank 4 (after Hu et al., ICLR 2022)",
        32,
        &TRANSFORMER2_LORA,
    ),
    cifar(
        "logistic",
        "Multinomial logistic regression, a stand-in network of federations",
        Alone(|n, s, c, _| logistic(n, s, c)),
    ),
    cifar("mlp", "One hidden layer of 64 features, a stand-in network of federations", Alone(mlp)),
    Model {
        id: "bag-of-tokens",
        about: "Mean of 32 features a token, a stand-in network of federations",
        sample: Sample::Tokens { own: [32], least: 1, most: 512 },
        classes: Some(2),
        build: Alone(bag_of_tokens),
    },
    text("transformer1", "One layer of 32 features, 32 tokens, a stand-in network of federations", 32, &TRANSFORMER1),
];

/// Builds the model `id` for samples of shape `input`, or of the model's own if none is given.
///
/// The first layer takes as many channels as the input has; layers after a flattening take as many
/// features as are left.
///
/// # Errors
/// An unknown name, or an input that the model cannot take.
pub fn build(id: &str, input: Option<&[u64]>) -> Result<Network, WorkloadError> {
    build_for(id, input, None)
}

/// As [`build`], for samples of `classes` classes, or of the model's own number if none is given.
///
/// # Errors
/// As [`build`]; no class at all, or a number of classes for a model that predicts tokens.
pub fn build_for(id: &str, input: Option<&[u64]>, classes: Option<u64>) -> Result<Network, WorkloadError> {
    let (model, width) = named(id)?;
    model.build(id, width, input, classes)
}

/// As [`build_for`], a network with narrower hidden layers. Of `logistic`, which has none, it is the network itself.
///
/// # Errors
/// As [`build_for`]; a model that has no narrower form.
pub fn build_narrow(
    id: &str,
    input: Option<&[u64]>,
    classes: Option<u64>,
    width: Width,
) -> Result<Network, WorkloadError> {
    named(id)?.0.build(id, width, input, classes)
}

/// The model of a name, such as `mobilenetv2`, and how wide it is: `mobilenetv2@0.5` has half of the channels.
///
/// # Errors
/// A name that nobody has, or a width that none can have.
pub fn named(name: &str) -> Result<(&'static Model, Width), WorkloadError> {
    let (id, width) = match name.split_once('@') {
        Some((id, width)) => {
            let wrong = |message| WorkloadError::Input { model: name.to_owned(), message };
            (id, width.parse().map_err(wrong)?)
        }
        None => (name, Width::FULL),
    };
    let model = MODELS.iter().find(|model| model.id == id).ok_or_else(|| {
        let nearest = nearest(id, MODELS.iter().map(|model| model.id));
        let guess = question_or(nearest, "expected an .onnx file, or an id of `haversack list models`");
        WorkloadError::Refused(format!("unknown model '{id}'{guess}"))
    })?;
    Ok((model, width))
}

fn dimensions(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
