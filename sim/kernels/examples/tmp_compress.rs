use haversack_kernels::compress::*; use haversack_kernels::Isa; use std::time::Instant;
fn main(){ if let Some(which)=std::env::args().nth(1) { let v=Kind::Smooth.generate(Shape{channels:64,height:112,width:112}); let isa=Isa::chosen().unwrap(); let c=Codec::new(if which.contains('m') {Mode::mixed(Bound::OfChannel(1e-3))} else {Mode::ErrorBounded{bound:Bound::OfTensor(1e-3)}},isa).unwrap(); let mut out=Vec::new(); let mut back=vec![0.0;v.len()]; let m=FeatureMap{values:&v,channels:64,height:112,width:112}; c.compress(m,&mut out).unwrap(); for _ in 0..1000 { if which.contains('d') { decompress(&out,isa,&mut back).unwrap(); } else { c.compress(m,&mut out).unwrap(); } } return; }
  let shape=Shape{channels:64,height:112,width:112};
  for kind in Kind::ALL { let v=kind.generate(shape);
   let z=zstd::bulk::compress(unsafe{std::slice::from_raw_parts(v.as_ptr().cast(),v.len()*4)},3).unwrap();
   println!("{kind:?} zstd3 ratio {:.2}", v.len() as f64*4.0/z.len() as f64);
   for (n,mode) in [("b1e-2",Mode::ErrorBounded{bound:Bound::OfTensor(1e-2)}),("b1e-3",Mode::ErrorBounded{bound:Bound::OfTensor(1e-3)}),("b1e-4",Mode::ErrorBounded{bound:Bound::OfTensor(1e-4)}),("b1e-5",Mode::ErrorBounded{bound:Bound::OfTensor(1e-5)}),("b1e-6",Mode::ErrorBounded{bound:Bound::OfTensor(1e-6)}),("m1e-3",Mode::mixed(Bound::OfChannel(1e-3))),("m2e-3",Mode::mixed(Bound::OfChannel(2e-3))),("m1e-2",Mode::mixed(Bound::OfChannel(1e-2))),("q4",Mode::Quantise{bits:haversack_kernels::quantise::Bits::new(4).unwrap()}),("q8",Mode::Quantise{bits:haversack_kernels::quantise::Bits::new(8).unwrap()})]{
    let isa=Isa::chosen().unwrap();
    let c=Codec::new(mode,isa).unwrap(); let mut out=Vec::new(); let mut back=vec![0.0;v.len()];
    let m=FeatureMap{values:&v,channels:64,height:112,width:112};
    let (mut e,mut d)=(f64::MAX,f64::MAX); let mut s=Summary::default();
    for _ in 0..20 { let t=Instant::now(); s=c.compress(m,&mut out).unwrap(); e=e.min(t.elapsed().as_secs_f64()); let t=Instant::now(); decompress(&out,isa,&mut back).unwrap(); d=d.min(t.elapsed().as_secs_f64());}
    println!("{n}: enc {:.0} us dec {:.0} us ratio {:.2} var {:.3e} {s:?} est {:.2}", e*1e6,d*1e6,v.len() as f64*4.0/out.len() as f64, c.error_variance(m).unwrap(), ratio_on_synthetic(&c,shape,kind).unwrap());
   }
   let c=Codec::new(Mode::mixed(Bound::OfChannel(1e-2)),Isa::chosen().unwrap()).unwrap(); let t=Instant::now(); let r=ratio_on_synthetic(&c,shape,kind).unwrap(); println!("ratio {r:.2} in {:?}",t.elapsed());
  }
}
